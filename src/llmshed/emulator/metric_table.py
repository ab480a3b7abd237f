"""Names, types, help texts and buckets of TGI's metrics, from router/src/server.rs and backends/v3."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """Metric types of the text format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


class Row(NamedTuple):
    """One metric; `description` is None where the source describes none."""

    kind: Kind
    description: str | None


TABLE: Mapping[str, Row] = {
    "tgi_request_count": Row(Kind.COUNTER, "Total number of requests"),
    "tgi_request_success": Row(Kind.COUNTER, "Number of successful requests"),
    "tgi_request_failure": Row(Kind.COUNTER, None),
    "tgi_request_duration": Row(Kind.HISTOGRAM, "Total time spent processing the request"),
    "tgi_request_validation_duration": Row(Kind.HISTOGRAM, "Time spent validating the request"),
    "tgi_request_queue_duration": Row(Kind.HISTOGRAM, "Time spent in the queue per request"),
    "tgi_request_inference_duration": Row(Kind.HISTOGRAM, "Request inference duration"),
    "tgi_request_mean_time_per_token_duration": Row(Kind.HISTOGRAM, "Mean time per token per request"),
    "tgi_request_generated_tokens": Row(Kind.HISTOGRAM, "Generated tokens per request"),
    "tgi_request_input_length": Row(Kind.HISTOGRAM, "Input token length per request"),
    "tgi_request_max_new_tokens": Row(Kind.HISTOGRAM, "Maximum new tokens per request"),
    "tgi_request_skipped_tokens": Row(Kind.SUMMARY, "Speculated tokens per request"),
    "tgi_queue_size": Row(Kind.GAUGE, "Current queue size"),
    "tgi_batch_current_size": Row(Kind.GAUGE, "Current batch size"),
    "tgi_batch_current_max_tokens": Row(Kind.GAUGE, "Maximum tokens for the current batch"),
    "tgi_batch_next_size": Row(Kind.HISTOGRAM, "Batch size of the next batch"),
    "tgi_batch_inference_count": Row(Kind.COUNTER, "Inference calls per method (prefill or decode)"),
    "tgi_batch_inference_success": Row(
        Kind.COUNTER, "Number of successful inference calls per method (prefill or decode)"
    ),
    "tgi_batch_inference_failure": Row(Kind.COUNTER, None),
    "tgi_batch_inference_duration": Row(Kind.HISTOGRAM, "Batch inference duration"),
    "tgi_batch_forward_duration": Row(Kind.HISTOGRAM, "Batch forward duration per method (prefill or decode)"),
    "tgi_batch_decode_duration": Row(Kind.HISTOGRAM, "Time spent decoding a batch per method (prefill or decode)"),
    "tgi_batch_filter_duration": Row(
        Kind.HISTOGRAM, "Time spent filtering batches and sending generated tokens per method (prefill or decode)"
    ),
    "tgi_batch_concat_duration": Row(Kind.HISTOGRAM, None),
    "tgi_batch_concat": Row(Kind.COUNTER, None),
}
"""Every metric that TGI shows.

`tgi_batch_max_total_tokens` is set in its source before a recorder is there, and `tgi_batch_total_tokens` described and
never set: neither is shown.
"""

DESCRIBED_SINCE = (2, 3, 0)
"""First version that describes its metrics; earlier ones write no `# HELP` lines."""

QUANTILES = (0.0, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0)
"""Quantiles of a summary."""


def _duration_edges() -> tuple[float, ...]:
    edges, edge = [], 0.0001
    for _ in range(35):
        edge *= 1.5
        edges.append(edge)
    return tuple(edges)


DURATION_EDGES = _duration_edges()
"""35 edges from 0.00015 s, each 1.5 times the one before."""


def edges_of(name: str, max_input_tokens: int, max_total_tokens: int) -> tuple[float, ...]:
    """Return the bucket edges of a histogram; those of token counts depend on the replica's limits."""
    match name:
        case "tgi_request_input_length":
            return tuple(max_input_tokens / 100 * step for step in range(1, 101))
        case "tgi_request_generated_tokens" | "tgi_request_max_new_tokens":
            return tuple(max_total_tokens / 100 * step for step in range(1, 101))
        case "tgi_batch_next_size":
            return tuple(float(size) for size in range(1, 1025))
        case _:
            return DURATION_EDGES
