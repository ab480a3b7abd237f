"""What llama.cpp's `/metrics` tells of its present state, which it serves when started with `--metrics`.

It tells nothing of the KV cache and preempts nothing. Its two rates are averages since the last read by anybody, so
they are left alone.
"""

from typing import Final

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.engines.base import Activity
from llmshed.engines.metrics_text import plain_values

_RUNNING: Final = "llamacpp:requests_processing"
_WAITING: Final = "llamacpp:requests_deferred"
_PROMPT_TOKENS: Final = "llamacpp:prompt_tokens_total"
_CACHED_TOKENS: Final = "llamacpp:prompt_tokens_cached_total"
"""Prompt tokens found in the cache, which the counter above leaves out; older builds do not tell."""


def read_llamacpp_metrics(body: bytes, at: float) -> ReplicaReading:
    """Read the queue."""
    return ReplicaReading(at, queued_requests=plain_values(body, (_WAITING,)).get(_WAITING))


def read_llamacpp_activity(body: bytes) -> Activity:
    """Read slots in use, queue and prompts."""
    told = plain_values(body, (_RUNNING, _WAITING, _PROMPT_TOKENS, _CACHED_TOKENS))
    evaluated = told.get(_PROMPT_TOKENS)
    tokens = None if evaluated is None else evaluated + told.get(_CACHED_TOKENS, 0.0)
    return Activity(told.get(_RUNNING), told.get(_WAITING), tokens)
