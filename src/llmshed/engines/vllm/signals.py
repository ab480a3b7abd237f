"""What vLLM's `/metrics` tells of its present state, under the names of all its versions.

Each series carries the model's name and, in newer versions, the number of one of the engines behind the address (data
parallelism). Requests and tokens are summed over them; the used share of the KV cache is their mean, since their caches
are of one size. Up to 0.11 that was called `gpu_cache_usage_perc`. `num_requests_swapped` of 0.8 and before counts
sequences whose KV cache was moved to the CPU: they wait again.
"""

import math
from collections import defaultdict
from typing import Final

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.engines.base import Activity
from llmshed.engines.metrics_text import Series, labelled_values

MOST_LINES: Final = 1024
"""Lines read of the wanted names, which stand there once an engine; 64 engines behind an address are none too many."""
_RUNNING: Final = "vllm:num_requests_running"
_WAITING: Final = "vllm:num_requests_waiting"
_SWAPPED: Final = "vllm:num_requests_swapped"
_KV_RATIO: Final = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
"""The present name first; both are shares of 1 in spite of their ends."""
_PREEMPTIONS: Final = "vllm:num_preemptions_total"
_PROMPT_TOKENS: Final = "vllm:prompt_tokens_total"


def read_vllm_metrics(body: bytes, at: float) -> ReplicaReading:
    """Read queue, KV cache and preemptions."""
    told = _told(body, (_WAITING, _SWAPPED, *_KV_RATIO, _PREEMPTIONS))
    return ReplicaReading(
        at,
        queued_requests=_queued(told),
        kv_used_ratio=next((_mean(told[name]) for name in _KV_RATIO if name in told), None),
        preemptions_total=_sum(told, _PREEMPTIONS),
    )


def read_vllm_activity(body: bytes) -> Activity:
    """Read batch, queue and prompts."""
    told = _told(body, (_RUNNING, _WAITING, _SWAPPED, _PROMPT_TOKENS))
    return Activity(_sum(told, _RUNNING), _queued(told), _sum(told, _PROMPT_TOKENS))


def _told(body: bytes, names: tuple[str, ...]) -> dict[str, list[float]]:
    """Return the values of each name; of two answers for the same labels neither is believed."""
    by_labels: dict[tuple[str, tuple[tuple[str, str], ...]], list[Series]] = defaultdict(list)
    for series in labelled_values(body, names, MOST_LINES):
        by_labels[series.name, tuple(sorted(series.labels.items()))].append(series)
    told: dict[str, list[float]] = {}
    for (name, _), lines in by_labels.items():
        if len(lines) == 1:
            told.setdefault(name, []).append(lines[0].value)
    return told


def _queued(told: dict[str, list[float]]) -> float | None:
    waiting = _sum(told, _WAITING)
    return None if waiting is None else waiting + (_sum(told, _SWAPPED) or 0.0)


def _sum(told: dict[str, list[float]], name: str) -> float | None:
    return math.fsum(told[name]) if name in told else None


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
