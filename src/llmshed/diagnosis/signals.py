"""What is read, in the order in which an overload occurs: one row a signal.

A query holds `$rate` where its range stands, `$and` where a selector of the gateways is added to others, and `$only`
where it stands alone. Engines are read by every name that their versions use, since two of them may run side by side.
"""

from enum import StrEnum
from string import Template
from typing import NamedTuple

from llmshed.admission.reasons import Reason
from llmshed.diagnosis.departure import Bad


class Stage(StrEnum):
    """Where in the life of an overload a signal belongs."""

    ARRIVALS = "arrivals"
    QUEUES = "queues"
    ENGINE = "engine"


class Unit(StrEnum):
    """What a value is counted in."""

    PER_SECOND = "/s"
    TOKENS = "tokens"
    TOKENS_PER_SECOND = "tokens/s"
    SECONDS = "s"
    RATIO = "ratio"
    NUMBER = ""


class Signal(NamedTuple):
    """One signal.

    Args:
        name: its name.
        stage: where it belongs.
        unit: what it is counted in; ratios are shown in percent.
        bad: in which direction it is a trouble.
        least_change: smallest change that means anything.
        query: how it is asked for, as one series.
        meaning: what it is, for people.
    """

    name: str
    stage: Stage
    unit: Unit
    bad: Bad
    least_change: float
    query: str
    meaning: str


CAPACITY_REASONS = (
    Reason.TOKEN_BUDGET_EXHAUSTED,
    Reason.CONCURRENCY_LIMIT,
    Reason.PREFILL_WINDOW_FULL,
    Reason.QUEUE_FULL,
    Reason.QUEUE_TIMEOUT,
    Reason.DEADLINE_INFEASIBLE,
    Reason.SHED_PRIORITY,
    Reason.COUNTING_BACKLOG,
    Reason.NO_REPLICA,
)
"""Why a request is refused for want of room."""
_INTERACTIVE = 'lane="interactive"'
_BULK = 'lane="bulk"'
_ANY = 'lane=~"interactive|bulk|overflow"'


def _refused(lane: str, reasons: tuple[Reason, ...]) -> str:
    return f'sum(rate(llmshed_requests_total{{{lane},decision!="admit",reason=~"{"|".join(reasons)}"$and}}[$rate]))'


def _share(reasons: tuple[Reason, ...]) -> str:
    return f"{_refused(_INTERACTIVE, reasons)} / ({_refused(_INTERACTIVE, CAPACITY_REASONS)} > 0)"


def _rate(metric: str, selector: str) -> str:
    return f"sum(rate({metric}{{{selector}$and}}[$rate]))"


def _p95(metric: str, selector: str) -> str:
    return f"histogram_quantile(0.95, sum by (le) (rate({metric}_bucket{{{selector}}}[$rate])))"


def _first_of(operation: str, *metrics: str) -> str:
    """Ask for the first of several names that anything is known of."""
    return " or ".join(f"{operation}({metric})" for metric in metrics)


_UP, _DOWN, _NEITHER = Bad.UP, Bad.DOWN, Bad.NEITHER
_A, _Q, _E = Stage.ARRIVALS, Stage.QUEUES, Stage.ENGINE

SIGNALS: tuple[Signal, ...] = (
    Signal(
        "interactive_arrivals", _A, Unit.PER_SECOND, _UP, 0.1,
        _rate("llmshed_first_arrivals_total", _INTERACTIVE), "interactive requests, first arrivals",
    ),
    Signal(
        "bulk_arrivals", _A, Unit.PER_SECOND, _UP, 0.1,
        _rate("llmshed_first_arrivals_total", _BULK), "bulk requests, first arrivals",
    ),
    Signal(
        "interactive_input", _A, Unit.TOKENS_PER_SECOND, _UP, 100.0,
        _rate("llmshed_input_tokens_sum", _INTERACTIVE), "prompt tokens of interactive requests",
    ),
    Signal(
        "bulk_input", _A, Unit.TOKENS_PER_SECOND, _UP, 100.0,
        _rate("llmshed_input_tokens_sum", _BULK), "prompt tokens of bulk requests",
    ),
    Signal(
        "interactive_input_p95", _A, Unit.TOKENS, _UP, 64.0,
        _p95("llmshed_input_tokens", f"{_INTERACTIVE}$and"), "prompt of an interactive request, 95 %",
    ),
    Signal(
        "interactive_ceiling_p95", _A, Unit.TOKENS, _UP, 64.0,
        _p95("llmshed_requested_output_tokens", f"{_INTERACTIVE}$and"),
        "output ceiling of an interactive request, 95 %",
    ),
    Signal(
        "interactive_share", _A, Unit.RATIO, _NEITHER, 0.05,
        f"{_rate('llmshed_first_arrivals_total', _INTERACTIVE)}"
        f" / ({_rate('llmshed_first_arrivals_total', _ANY)} > 0)",
        "interactive part of the first arrivals",
    ),
    Signal(
        "amplification", _A, Unit.NUMBER, _UP, 0.3,
        "1 + sum(rate(llmshed_client_retries_total{$only}[$rate]))"
        " / clamp_min(sum(rate(llmshed_first_arrivals_total{$only}[$rate])), 0.001)",
        "how often each request arrives",
    ),
    Signal(
        "interactive_refused", _A, Unit.PER_SECOND, _UP, 0.05,
        _refused(_INTERACTIVE, CAPACITY_REASONS), "interactive requests refused for want of room",
    ),
    Signal(
        "bulk_refused", _A, Unit.PER_SECOND, _UP, 0.05,
        _refused(_BULK, CAPACITY_REASONS), "bulk requests refused for want of room",
    ),
    Signal(
        "refused_for_tokens", _A, Unit.RATIO, _UP, 0.1,
        _share((Reason.TOKEN_BUDGET_EXHAUSTED,)), "part of these refused for tokens",
    ),
    Signal(
        "refused_for_seats", _A, Unit.RATIO, _UP, 0.1,
        _share((Reason.CONCURRENCY_LIMIT,)), "part of these refused for seats",
    ),
    Signal(
        "refused_for_prefill", _A, Unit.RATIO, _UP, 0.1,
        _share((Reason.PREFILL_WINDOW_FULL,)), "part of these refused for prompts ahead",
    ),
    Signal(
        "refused_for_counting", _A, Unit.RATIO, _UP, 0.1,
        'sum(rate(llmshed_requests_total{decision!="admit",reason="counting_backlog"$and}[$rate]))'
        ' / (sum(rate(llmshed_requests_total{decision!="admit",reason!="none"$and}[$rate])) > 0)',
        "part of all refusals because too much waits to be counted",
    ),
    Signal(
        "counting_p95", _A, Unit.SECONDS, _UP, 0.05,
        _p95("llmshed_counting_seconds", "$only"), "waiting for and running a token count, 95 %",
    ),
    Signal(
        "miscounted", _A, Unit.NUMBER, _UP, 0.5,
        "sum(increase(llmshed_count_mismatch_total{$only}[$rate]))"
        ' + (sum(increase(llmshed_served_counts_total{equal="no"$and}[$rate])) or vector(0))',
        "prompts that the engine counts otherwise",
    ),
    Signal(
        "oldest_age", _Q, Unit.SECONDS, _UP, 0.1,
        f"max(llmshed_queue_oldest_age_seconds{{{_INTERACTIVE}$and}})", "age of the oldest interactive request",
    ),
    Signal(
        "interactive_depth", _Q, Unit.NUMBER, _UP, 2.0,
        f"sum(llmshed_queue_depth{{{_INTERACTIVE}$and}})", "interactive requests that wait",
    ),
    Signal(
        "bulk_depth", _Q, Unit.NUMBER, _UP, 2.0, f"sum(llmshed_queue_depth{{{_BULK}$and}})", "bulk requests that wait"
    ),
    Signal(
        "queued_prefill", _Q, Unit.TOKENS, _UP, 1000.0,
        "sum(llmshed_queued_prefill_tokens{$only})", "prompt tokens that wait",
    ),
    Signal(
        "ttft_p95", _E, Unit.SECONDS, _UP, 0.1,
        _p95("llmshed_ttft_seconds", f"{_INTERACTIVE}$and"), "interactive time to first token, 95 %",
    ),
    Signal(
        "tpot_p95", _E, Unit.SECONDS, _UP, 0.01,
        _p95("llmshed_tpot_seconds", f"{_INTERACTIVE}$and"), "interactive time per output token, 95 %",
    ),
    Signal(
        "missed", _E, Unit.RATIO, _UP, 0.02,
        f"1 - {_rate('llmshed_good_requests_total', _INTERACTIVE)}"
        f" / ({_rate('llmshed_objective_requests_total', _INTERACTIVE)} > 0)",
        "interactive requests that missed their objectives",
    ),
    Signal(
        "missed_requests", _E, Unit.NUMBER, _UP, 2.0,
        f"sum(increase(llmshed_objective_requests_total{{{_INTERACTIVE}$and}}[$rate]))"
        f" - sum(increase(llmshed_good_requests_total{{{_INTERACTIVE}$and}}[$rate]))",
        "their number within the range of a rate",
    ),
    Signal(
        "lent", _E, Unit.RATIO, _UP, 0.1,
        "sum(llmshed_active_tokens{$only}) / (sum(llmshed_budget_tokens{$only}) > 0)", "safe budgets that are lent",
    ),
    Signal(
        "seated", _E, Unit.RATIO, _UP, 0.1,
        "sum(llmshed_active_sequences{$only}) / (sum(llmshed_hard_cap_sequences{$only}) > 0)", "seats that are taken",
    ),
    Signal(
        "replicas_up", _E, Unit.RATIO, _DOWN, 0.01,
        "sum(llmshed_replica_up{$only}) / count(llmshed_replica_up{$only})", "replicas that take work",
    ),
    Signal(
        "budget_factor", _E, Unit.RATIO, _DOWN, 0.05,
        "min(llmshed_replica_budget_factor{$only})", "least budget that signals leave a replica",
    ),
    Signal(
        "stalls", _E, Unit.NUMBER, _UP, 0.5,
        'sum(increase(llmshed_replica_signals_total{signal="stall"$and}[$rate]))', "stalls of replicas",
    ),
    Signal(
        "kv_signals", _E, Unit.NUMBER, _UP, 0.5,
        'sum(increase(llmshed_replica_signals_total{signal=~"kv|preemptions"$and}[$rate]))',
        "signals of a full cache or of preemptions",
    ),
    Signal(
        "profile_mismatch", _E, Unit.NUMBER, _UP, 0.5,
        'count(max by (replica) (llmshed_profile_match{state="mismatch"$and}) > 0) or vector(0)',
        "replicas that are not what their profile was measured on",
    ),
    Signal(
        "stale_rungs", _E, Unit.NUMBER, _UP, 0.5,
        "count(llmshed_ladder_evaluation_stale{$only} > 0) or vector(0)",
        "rungs whose evaluation no longer holds",
    ),
    Signal(
        "upstream_errors", _E, Unit.PER_SECOND, _UP, 0.05,
        'sum(rate(llmshed_upstream_errors_total{kind!="busy"$and}[$rate]))', "requests that replicas failed",
    ),
    Signal(
        "bulk_prefill", _E, Unit.RATIO, _UP, 0.1,
        "max(llmshed_bulk_prefill_ratio{$only})", "bulk's part of the prompts",
    ),
    Signal(
        "engine_waiting", _E, Unit.NUMBER, _UP, 2.0,
        _first_of(
            "sum", "vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred", "tgi_queue_size",
        ),
        "requests that wait inside engines",
    ),
    Signal(
        "engine_running", _E, Unit.NUMBER, _NEITHER, 2.0,
        _first_of(
            "sum", "vllm:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing",
            "tgi_batch_current_size",
        ),
        "requests that engines work on",
    ),
    Signal(
        "kv_used", _E, Unit.RATIO, _UP, 0.1,
        _first_of("max", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
        "KV cache in use, fullest engine",
    ),
    Signal(
        "preemptions", _E, Unit.PER_SECOND, _UP, 0.02,
        "sum(rate(vllm:num_preemptions_total[$rate]))", "sequences that engines threw out",
    ),
    Signal(
        "generated", _E, Unit.TOKENS_PER_SECOND, _NEITHER, 10.0,
        _first_of(
            "sum", "rate(vllm:generation_tokens_total[$rate])", "rate(sglang:generation_tokens_total[$rate])",
            "rate(llamacpp:tokens_predicted_total[$rate])", "rate(tgi_request_generated_tokens_sum[$rate])",
        ),
        "tokens that engines make",
    ),
    Signal(
        "gpu", _E, Unit.RATIO, _NEITHER, 0.1,
        "max(DCGM_FI_DEV_GPU_UTIL < 101) / 100 or max(nv_gpu_utilization <= 1)",
        "GPU utilisation, which is evidence of nothing by itself",
    ),
)  # fmt: skip


def written(signal: Signal, rate_seconds: float, selector: str) -> str:
    """Return the query of a signal.

    Args:
        signal: the signal.
        rate_seconds: range over which counters are taken, at least four scrape intervals.
        selector: matchers of the gateways' own series, as in `job="llmshed"`; empty for all.
    """
    added = f",{selector}" if selector else ""
    return Template(signal.query).substitute({"rate": f"{rate_seconds:g}s", "and": added, "only": selector})
