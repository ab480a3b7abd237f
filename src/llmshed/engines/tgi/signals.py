"""What TGI's `/metrics` tells of its present state (router/src/infer and backends/v3/src/queue.rs set the gauges).

`tgi_batch_max_total_tokens` is set before the recorder exists and never shows, so the size of the KV cache has to come
from `/info`, which names it up to version 2. TGI preempts nothing. A metric appears once it has been used.
"""

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.engines.base import Activity
from llmshed.engines.metrics_text import plain_values

_QUEUE = "tgi_queue_size"
_RESERVED_TOKENS = "tgi_batch_current_max_tokens"
_RUNNING = "tgi_batch_current_size"
_PROMPT_TOKENS = "tgi_request_input_length_sum"


def read_tgi_metrics(body: bytes, kv_tokens: int | None, at: float) -> ReplicaReading:
    """Read the queue's length, and the reserved share of a KV cache of `kv_tokens` where that is known."""
    told = plain_values(body, (_QUEUE, _RESERVED_TOKENS))
    reserved_tokens = told.get(_RESERVED_TOKENS)
    share = None if reserved_tokens is None or kv_tokens is None else reserved_tokens / kv_tokens
    return ReplicaReading(at, queued_requests=told.get(_QUEUE), kv_used_ratio=share)


def read_tgi_activity(body: bytes) -> Activity:
    """Read batch, queue and prompts; what is not on the page has not been used yet, so there was none of it."""
    told = plain_values(body, (_QUEUE, _RUNNING, _PROMPT_TOKENS))
    return Activity(told.get(_RUNNING, 0.0), told.get(_QUEUE, 0.0), told.get(_PROMPT_TOKENS, 0.0))
