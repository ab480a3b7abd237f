"""Follows vLLM's streams of one completion."""

from collections.abc import Mapping
from typing import Any, Final

from llmshed.engines.base import EngineFailure, UpstreamFault
from llmshed.engines.events import EventReader, told_count
from llmshed.engines.vllm.failures import read_event_failure

_FAILED: Final = {"abort", "error"}
"""Finish reasons of a sequence that the engine gave up, at a stop of the server too."""


class VllmStreamReader(EventReader):
    """Reads a stream of one sequence, whose events tell the usage so far; without that each choice is a token."""

    def __init__(self) -> None:
        """Begin before the first byte."""
        super().__init__(read_event_failure)

    def _done(self) -> None:
        self._complete()

    def _read(self, event: Mapping[str, Any]) -> None:
        facts = self.facts
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
        usage = event.get("usage")
        told = usage.get("completion_tokens") if isinstance(usage, dict) else None
        facts.output_tokens = told_count(told, facts.output_tokens + (choice is not None))
        if choice is not None and self._finish(choice.get("finish_reason")) and facts.finish_reason in _FAILED:
            text = f"the engine ended the sequence with {facts.finish_reason}"
            self._fail(EngineFailure(UpstreamFault.ENGINE, 500, text, "error"))
