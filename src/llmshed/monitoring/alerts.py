"""The alerts: symptoms that callers feel first, then what makes the gateway's own numbers untrue."""

from enum import StrEnum
from typing import NamedTuple

from llmshed.monitoring.recording import attainment


class Severity(StrEnum):
    """Whether somebody has to act now, or in working hours."""

    PAGE = "page"
    TICKET = "ticket"


class Alert(NamedTuple):
    """One alert.

    Args:
        name: its name, CamelCase.
        expr: the query that holds while there is something to tell.
        lasts: for how long it has to hold, as Prometheus writes a duration.
        severity: whether it wakes anybody.
        summary: what is wrong, in one sentence with the labels that say where.
        action: what to do first.
        heading: heading of docs/monitoring.md that explains it; empty where it has one of its own.
    """

    name: str
    expr: str
    lasts: str
    severity: Severity
    summary: str
    action: str
    heading: str = ""

    @property
    def explained_at(self) -> str:
        """Return the heading that explains it."""
        return self.heading or self.name.removeprefix("Llmshed")


class Burn(NamedTuple):
    """How fast the permitted share of missed requests is used up, in two windows, for an alert to be raised."""

    long: str
    short: str
    factor: float
    severity: Severity


BURNS = (
    Burn("1h", "5m", 14.4, Severity.PAGE),
    Burn("6h", "30m", 6.0, Severity.PAGE),
    Burn("1d", "2h", 3.0, Severity.TICKET),
    Burn("3d", "6h", 1.0, Severity.TICKET),
)
"""The windows and factors of the Site Reliability Workbook, chapter 5: 2 %, 5 %, 10 % and 10 % of a month's share."""
LEAST_RATE = 0.01
"""Requests a second below which a share of them says nothing: three in five minutes."""


def alerts(interactive_objective: float, bulk_objective: float) -> tuple[Alert, ...]:
    """Return all alerts.

    Args:
        interactive_objective: share of the interactive requests that are to meet their objectives, above 0 and below 1.
        bulk_objective: the same for bulk, which is refused first and counts apart.
    """
    return (
        *(_burning("interactive", interactive_objective, burn) for burn in BURNS),
        *(_burning("bulk", bulk_objective, burn) for burn in BURNS if burn.severity is Severity.TICKET),
        *_SYMPTOMS,
        *_UNTRUE,
    )


def _burning(lane: str, objective: float, burn: Burn) -> Alert:
    permitted = f"{burn.factor:g} * {1 - objective:g}"
    windows = " and ".join(
        f'(1 - {attainment(window)}{{lane="{lane}"}}) > {permitted}' for window in (burn.long, burn.short)
    )
    heard = f'sum by (lane) (rate(llmshed_objective_requests_total{{lane="{lane}"}}[{burn.long}])) > {LEAST_RATE:g}'
    return Alert(
        name=f"Llmshed{lane.capitalize()}ObjectivesMissed{burn.long}",
        expr=f"{windows} and {heard}",
        lasts="2m" if burn.severity is Severity.PAGE else "15m",
        severity=burn.severity,
        summary=f"Lane {lane}: of the last {burn.long} {{{{ $value | humanizePercentage }}}} missed its objectives.",
        action="`llmshed status` says what each pool holds and refuses now.",
        heading="ObjectivesMissed",
    )


_SYMPTOMS = (
    Alert(
        "LlmshedPoolWithoutReplica",
        "sum by (pool) (llmshed_replica_up) == 0",
        "1m",
        Severity.PAGE,
        "Pool {{ $labels.pool }} has no replica that takes work.",
        "`llmshed status` names each replica's trouble.",
    ),
    Alert(
        "LlmshedReplicaDown",
        "llmshed_replica_up == 0",
        "5m",
        Severity.TICKET,
        "Replica {{ $labels.replica }} of pool {{ $labels.pool }} takes no work.",
        "`llmshed status` names its trouble; the engine's own log says why.",
    ),
    Alert(
        "LlmshedRetryEcho",
        "lane:llmshed_amplification:ratio_rate5m > 2",
        "5m",
        Severity.TICKET,
        "Lane {{ $labels.lane }}: each request arrives {{ $value | humanize }} times.",
        "Find the client that ignores Retry-After: decision lines hold retry_count, arrival and tenant.",
    ),
    Alert(
        "LlmshedBudgetShrunk",
        "llmshed_replica_budget_factor < 0.7",
        "10m",
        Severity.TICKET,
        "Signals leave replica {{ $labels.replica }} {{ $value | humanizePercentage }} of its safe budget.",
        "`llmshed_replica_signals_total` says which signal; something else may use the replica.",
    ),
    Alert(
        "LlmshedLadderUp",
        "llmshed_ladder_rung > 0",
        "15m",
        Severity.TICKET,
        "Pool {{ $labels.pool }} has stood on rung {{ $value }} of its ladder for a quarter of an hour.",
        "`llmshed ladder status` says by which signal, and what the rungs in force do to callers.",
    ),
    Alert(
        "LlmshedLadderHeld",
        "llmshed_ladder_held > 0",
        "4h",
        Severity.TICKET,
        "Somebody has held a rung of pool {{ $labels.pool }} for four hours.",
        "`llmshed ladder history` says who and why; `llmshed ladder release` gives it up.",
    ),
    Alert(
        "LlmshedLoopLate",
        "histogram_quantile(0.99, sum by (instance, le) (rate(llmshed_loop_lag_seconds_bucket[5m]))) > 0.1",
        "5m",
        Severity.TICKET,
        "The gateway {{ $labels.instance }} wakes up {{ $value | humanizeDuration }} late.",
        "Its machine is short of CPU: nothing that it tells of waits is exact meanwhile.",
    ),
)
_UNTRUE = (
    Alert(
        "LlmshedInvariantBroken",
        "llmshed_invariant_violations > 0",
        "0m",
        Severity.PAGE,
        "The ledger of {{ $labels.instance }} breaks {{ $value }} of its invariants.",
        "This is a bug: report the log's `invariant_broken` lines.",
    ),
    Alert(
        "LlmshedCountsDiffer",
        "sum by (pool) (increase(llmshed_count_mismatch_total[15m])) > 0",
        "0m",
        Severity.PAGE,
        "Pool {{ $labels.pool }}: the gateway counts other tokens than the engine.",
        "Compare `llmshed tokenize` with the engine's own count; tokenizer or template was changed on one side.",
    ),
    Alert(
        "LlmshedProfileMismatch",
        'max by (replica, kind) (llmshed_profile_match{state="mismatch"}) > 0',
        "5m",
        Severity.TICKET,
        "Replica {{ $labels.replica }} is not what its profile was measured on: {{ $labels.kind }}.",
        "Run `llmshed calibrate` against it while it serves nobody, or put the profile right.",
    ),
    Alert(
        "LlmshedLadderStale",
        "llmshed_ladder_evaluation_stale > 0",
        "15m",
        Severity.TICKET,
        "The evaluation of rung {{ $labels.rung }} of pool {{ $labels.pool }} does not hold: {{ $labels.why }}.",
        "`llmshed ladder drill` measures the path anew.",
    ),
    Alert(
        "LlmshedReplicaMetricsBlind",
        "llmshed_replica_metrics_up == 0",
        "10m",
        Severity.TICKET,
        "The metrics of replica {{ $labels.replica }} tell nothing.",
        "Nothing is derated for it; signals of that replica are blind until it answers.",
    ),
    Alert(
        "LlmshedConfigRefused",
        "llmshed_config_last_reload_successful == 0",
        "5m",
        Severity.TICKET,
        "The configuration of {{ $labels.instance }} was refused; the earlier one is in force.",
        "`llmshed config check` lists every mistake.",
    ),
    Alert(
        "LlmshedLinesDropped",
        "increase(llmshed_log_lines_dropped_total[15m]) > 0",
        "0m",
        Severity.TICKET,
        "{{ $labels.instance }} dropped {{ $value | humanize }} log or decision lines.",
        "Its disk or pipe does not keep up.",
    ),
)
