"""Follows the streams of llama.cpp's `/completion`."""

from collections.abc import Mapping
from typing import Any

from llmshed.engines.events import EventReader, told_count
from llmshed.engines.openai_failures import read_openai_event


class LlamaCppStreamReader(EventReader):
    """Reads a stream whose events tell the tokens so far; the last one, without text, says why it ended."""

    def __init__(self) -> None:
        """Begin before the first byte."""
        super().__init__(read_openai_event)

    def _done(self) -> None:
        """Ignore it: this route ends without a terminator."""

    def _read(self, event: Mapping[str, Any]) -> None:
        self.facts.output_tokens = told_count(event.get("tokens_predicted"), self.facts.output_tokens)
        if event.get("stop") is True:
            self._finish(event.get("stop_type"))
            self._complete()
