"""The recording rules: names by level, metric and operation."""

from typing import NamedTuple

ATTAINMENT_WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
"""Windows over which attainment is taken: those of the burn rates."""
LEAST_FIRST_RATE = 0.001
"""First arrivals a second that amplification is held against at least, so that it is 1 where nobody comes at all."""


class RecordingRule(NamedTuple):
    """A query that Prometheus keeps the answers of.

    Args:
        record: name, `level:metric:operation`.
        expr: the query.
    """

    record: str
    expr: str


def attainment(window: str) -> str:
    """Return the name under which the attainment over a window is kept."""
    return f"lane:llmshed_attainment:ratio_rate{window}"


def recording_rules() -> tuple[RecordingRule, ...]:
    """Return all recording rules; each may use those before it."""
    return (*_arrivals(), *_queues(), *_engine(), *map(_attained, ATTAINMENT_WINDOWS))


def _arrivals() -> tuple[RecordingRule, ...]:
    return (
        RecordingRule("lane:llmshed_requests:rate5m", "sum by (lane, decision) (rate(llmshed_requests_total[5m]))"),
        RecordingRule(
            "lane:llmshed_refused_requests:rate5m",
            'sum by (lane, reason) (rate(llmshed_requests_total{decision!="admit",reason!="none"}[5m]))',
        ),
        RecordingRule(
            "lane:llmshed_amplification:ratio_rate5m",
            "1 + sum by (lane) (rate(llmshed_client_retries_total[5m]))\n"
            f"  / clamp_min(sum by (lane) (rate(llmshed_first_arrivals_total[5m])), {LEAST_FIRST_RATE:g})",
        ),
        RecordingRule(
            "lane:llmshed_offered_tokens:rate5m",
            "(\n"
            "  sum by (lane) (rate(llmshed_input_tokens_sum[5m]))\n"
            "  + sum by (lane) (rate(llmshed_requested_output_tokens_sum[5m]))\n"
            ")\n"
            "/ lane:llmshed_amplification:ratio_rate5m",
        ),
        RecordingRule(
            "lane:llmshed_demanded_tokens:rate5m",
            "lane:llmshed_offered_tokens:rate5m\n"
            "* (\n"
            "  sum by (lane) (rate(llmshed_request_duration_seconds_sum[5m]))\n"
            "  / sum by (lane) (rate(llmshed_request_duration_seconds_count[5m]) > 0)\n"
            ")",
        ),
        RecordingRule(
            "llmshed:demanded_replicas:rate5m",
            "sum(lane:llmshed_demanded_tokens:rate5m) / avg(llmshed_budget_tokens > 0)",
        ),
    )


def _queues() -> tuple[RecordingRule, ...]:
    return (
        RecordingRule("lane_pool:llmshed_queue_depth:sum", "sum by (lane, pool) (llmshed_queue_depth)"),
        RecordingRule(
            "lane_pool:llmshed_queue_oldest_age_seconds:max", "max by (lane, pool) (llmshed_queue_oldest_age_seconds)"
        ),
        RecordingRule(
            "lane_pool:llmshed_queued_prefill_tokens:sum", "sum by (lane, pool) (llmshed_queued_prefill_tokens)"
        ),
    )


def _engine() -> tuple[RecordingRule, ...]:
    return (
        RecordingRule(
            "lane:llmshed_ttft_seconds:p95_rate5m",
            "histogram_quantile(0.95, sum by (lane, le) (rate(llmshed_ttft_seconds_bucket[5m])))",
        ),
        RecordingRule(
            "lane:llmshed_tpot_seconds:p95_rate5m",
            "histogram_quantile(0.95, sum by (lane, le) (rate(llmshed_tpot_seconds_bucket[5m])))",
        ),
        RecordingRule(
            "pool:llmshed_active_tokens:ratio_budget",
            "sum by (pool) (llmshed_active_tokens) / sum by (pool) (llmshed_budget_tokens > 0)",
        ),
    )


def _attained(window: str) -> RecordingRule:
    return RecordingRule(
        attainment(window),
        f"sum by (lane) (rate(llmshed_good_requests_total[{window}]))\n"
        f"  / sum by (lane) (rate(llmshed_objective_requests_total[{window}]) > 0)",
    )
