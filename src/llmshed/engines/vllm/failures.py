"""How vLLM tells of failures: OpenAI's envelope, and 503 both for a full queue and for an engine that died."""

from collections.abc import Mapping
from typing import Any, Final

from llmshed.engines.base import EngineFailure
from llmshed.engines.openai_failures import read_openai_answer, read_openai_event

_BUSY: Final = ("currently busy", "prefill token backlog")
"""Parts of the two messages of `--max-num-queued-reqs` and `--max-num-queued-tokens` (vllm/exceptions.py, 0.32)."""


def read_answer_failure(status: int, body: bytes) -> EngineFailure:
    """Read an answer whose status is not 200; a body of any bytes gives a failure."""
    return read_openai_answer(status, body, _BUSY)


def read_event_failure(event: Mapping[str, Any]) -> EngineFailure:
    """Read an error event of a stream, which also comes under a status of 200 when the queue was full."""
    return read_openai_event(event, _BUSY)
