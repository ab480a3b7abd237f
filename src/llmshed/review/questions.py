"""What is asked for a review: one row a question.

A query holds `$span` and `$step` where ranges stand, `$and` where a selector of the gateways is added to others, and
`$only` where it stands alone.
"""

from string import Template
from typing import NamedTuple

LONG_WAIT_SECONDS = 60
"""A queue whose oldest request is older than this starves somebody."""


class Question(NamedTuple):
    """One question: its name, its query, and the labels that tell its rows apart."""

    name: str
    query: str
    labels: tuple[str, ...]


def _increase(metric: str, by: str, selector: str = "") -> str:
    return f"sum by ({by}) (increase({metric}{{{selector}$and}}[$span]))"


def _quantile(quantile: float, metric: str, by: str) -> str:
    return f"histogram_quantile({quantile:g}, sum by ({by}, le) (increase({metric}_bucket{{$only}}[$span])))"


def _ratio(above: str, below: str) -> str:
    return f"{above}\n/ ({below} > 0)"


_ANY = 'lane=~".+"'
_REFUSED = 'decision!="admit",reason!="none"'
_UTILISED = "sum by (pool) (llmshed_active_tokens{$only}) / (sum by (pool) (llmshed_budget_tokens{$only}) > 0)"
_RUNNING = "sum by (pool) (llmshed_active_sequences{$only})"
_OLDEST = "max by (lane, pool) (llmshed_queue_oldest_age_seconds{$only})"

QUESTIONS: tuple[Question, ...] = (
    Question("known", "count_over_time((count(llmshed_requests_in_progress{$only}))[$span:$step])", ()),
    Question("arrived", _increase("llmshed_requests_total", "lane", _ANY), ("lane",)),
    Question("refused", _increase("llmshed_requests_total", "lane, reason", _REFUSED), ("lane", "reason")),
    Question("would_refuse", _increase("llmshed_would_total", "lane, reason", _REFUSED), ("lane", "reason")),
    Question("served", _increase("llmshed_requests_total", "lane", 'decision="admit"'), ("lane",)),
    Question(
        "good",
        _ratio(
            _increase("llmshed_good_requests_total", "lane", _ANY),
            _increase("llmshed_objective_requests_total", "lane", _ANY),
        ),
        ("lane",),
    ),
    Question("ttft_p50", _quantile(0.5, "llmshed_ttft_seconds", "lane"), ("lane",)),
    Question("ttft_p95", _quantile(0.95, "llmshed_ttft_seconds", "lane"), ("lane",)),
    Question("tpot_p95", _quantile(0.95, "llmshed_tpot_seconds", "lane"), ("lane",)),
    Question("duration_p95", _quantile(0.95, "llmshed_request_duration_seconds", "lane"), ("lane",)),
    Question("oldest_wait", f"max_over_time(({_OLDEST})[$span:$step])", ("lane", "pool")),
    Question("starving", f"avg_over_time(({_OLDEST} > bool {LONG_WAIT_SECONDS})[$span:$step])", ("lane", "pool")),
    Question("residence_p99", _quantile(0.99, "llmshed_queue_residence_seconds", "lane, pool"), ("lane", "pool")),
    Question("utilised", f"avg_over_time(({_UTILISED})[$span:$step])", ("pool",)),
    Question("utilised_most", f"max_over_time(({_UTILISED})[$span:$step])", ("pool",)),
    Question("idle", "avg_over_time((sum by (pool) (llmshed_active_tokens{$only}) == bool 0)[$span:$step])", ("pool",)),
    Question(
        "ran",
        "sum by (lane, pool) (max_over_time(llmshed_reserved_tokens{$only}[$span])) > 0",
        ("lane", "pool"),
    ),
    Question("running_mean", f"avg_over_time(({_RUNNING})[$span:$step])", ("pool",)),
    Question("running_most", f"max_over_time(({_RUNNING})[$span:$step])", ("pool",)),
    Question(
        "input_mean",
        _ratio(
            _increase("llmshed_input_tokens_sum", "lane", _ANY), _increase("llmshed_input_tokens_count", "lane", _ANY)
        ),
        ("lane",),
    ),
    Question("input_p95", _quantile(0.95, "llmshed_input_tokens", "lane"), ("lane",)),
    Question(
        "asked_mean",
        _ratio(
            _increase("llmshed_requested_output_tokens_sum", "lane", _ANY),
            _increase("llmshed_requested_output_tokens_count", "lane", _ANY),
        ),
        ("lane",),
    ),
    Question("asked_p95", _quantile(0.95, "llmshed_requested_output_tokens", "lane"), ("lane",)),
    Question(
        "used_mean",
        _ratio(
            _increase("llmshed_output_tokens_sum", "lane", _ANY), _increase("llmshed_output_tokens_count", "lane", _ANY)
        ),
        ("lane",),
    ),
    Question("used_p95", _quantile(0.95, "llmshed_output_tokens", "lane"), ("lane",)),
    Question("profiles", "max by (profile) (max_over_time(llmshed_profile_info{$only}[$span]))", ("profile",)),
)


def written(question: Question, span_seconds: int, step_seconds: int, selector: str) -> str:
    """Return the query of a question.

    Args:
        question: the question.
        span_seconds: how far back.
        step_seconds: between two looks at what holds for a part of the time.
        selector: matchers of the gateways' series, as in `job="llmshed"`; empty for all.
    """
    added = f",{selector}" if selector else ""
    values = {"span": f"{span_seconds}s", "step": f"{step_seconds}s", "and": added, "only": selector}
    return Template(question.query).substitute(values)
