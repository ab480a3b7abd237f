"""Every metric of the gateway: name, labels, buckets and meaning (docs/metrics.md).

Labels take their values from enumerations and from the configuration, never from a client, so the number of series is
fixed by the operator. Every label set that is known beforehand is exported as 0 from the start: a rate over a series
that appears with its first event misses that event.
"""

from collections.abc import Iterable
from enum import StrEnum
from http import HTTPStatus
from itertools import product

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from llmshed import __version__
from llmshed.admission.echo import Arrival
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.signals.readings import Signal
from llmshed.admission.state import PoolState, ReplicaState
from llmshed.admission.verdict import Decision
from llmshed.observability.endings import Ending
from llmshed.observability.family import Family, Instrument
from llmshed.observability.ladder_counters import LadderCounters
from llmshed.observability.routes import KNOWN_ROUTES, OTHER_ROUTE
from llmshed.observability.state_collector import StateCollector

NONE = "none"
"""Label value of a lane that is not known, of the decision on a request that was never judged, and of no reason."""

# OpenTelemetry's advice for token counts, powers of 4; the lanes' default thresholds 1,024 and 4,096 are among them.
TOKEN_BUCKETS = (1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576)
# OpenTelemetry's, continued for queued bulk; the default objectives 2 s and 120 s have a bound of their own.
TTFT_BUCKETS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 120.0, 160.0),
)
TPOT_BUCKETS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
DURATION_BUCKETS = (0.01, 0.04, 0.16, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36)
# The default residences of the lanes, 0.9 s and 54 s, and one and a half of each have a bound close above.
RESIDENCE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 90.0, 180.0)
COUNTING_BUCKETS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
RETRY_AFTER_BUCKETS = (1, 2, 4, 8, 16, 32, 60, 120, 300, 600)
LAG_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)

SERVED_LANES = (Lane.INTERACTIVE, Lane.BULK)
ALL_LANES = (*Lane, NONE)
FAILED_AFTER_ADMISSION = (
    Reason.UPSTREAM_ERROR,
    Reason.UPSTREAM_TIMEOUT,
    Reason.INTERNAL_ERROR,
    Reason.CONCURRENCY_LIMIT,  # the engine's own seats were taken
    Reason.MALFORMED,  # the engine found fault with what the gateway let through
)
"""Why an admitted request may yet not be served."""
LEFT_QUEUE = (
    Reason.QUEUE_TIMEOUT,
    Reason.DEADLINE_INFEASIBLE,
    Reason.SHED_PRIORITY,
    Reason.QUEUE_FULL,
    Reason.NO_REPLICA,  # the replica that it waited for was lost, and so on: it was decided on anew
    Reason.TOKEN_BUDGET_EXHAUSTED,
    Reason.PREFILL_WINDOW_FULL,
    Reason.CONCURRENCY_LIMIT,
    Reason.DRAINING,
)
"""Why a request that was let wait may yet not be served."""
REPEATED = tuple(arrival for arrival in Arrival if arrival is not Arrival.FIRST)
WOULD_REFUSE = (
    *(reason for reason in Reason if reason.row.status == HTTPStatus.TOO_MANY_REQUESTS),
    Reason.CONTEXT_LIMIT,
    Reason.OUTPUT_LIMIT,
    Reason.LANE_LIMIT,
)
"""Why a request that is let through in observe mode would not have been served."""


class UpstreamErrorKind(StrEnum):
    """How a replica failed a request."""

    NOT_SENT = "not_sent"
    """It could not be connected to, or closed the connection before it read a byte."""
    LOST = "lost"
    """The connection broke after the request was sent."""
    BUSY = "busy"
    """The engine refused it: its own permits were taken."""
    STATUS = "status"
    """It answered with an error of its own."""
    STREAM = "stream"
    """It told an error inside a stream, or ended the stream too early."""
    FIRST_BYTE_TIMEOUT = "first_byte_timeout"
    IDLE_TIMEOUT = "idle_timeout"


EQUAL = {True: "yes", False: "no"}
"""Label values of whether two counts are equal."""


class Displaced(StrEnum):
    """Which client connection was closed for want of descriptors."""

    IDLE = "idle"
    NEWCOMER = "newcomer"


class QueueSize(StrEnum):
    """The two queues of the counting pool."""

    SMALL = "small"
    LARGE = "large"


class Metrics:
    """All instruments on a registry of their own, so that two gateways in one process do not meet."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves it unannotated
        self.registry = CollectorRegistry(auto_describe=True)
        self.state = StateCollector(self.registry)
        self.ladders = LadderCounters(self.registry)
        self._define_requests()
        self._define_times()
        self._define_gateway()
        self._start_at_zero()

    def know_pools(self, pools: Iterable[PoolState]) -> None:
        """Export the waits in these pools, and the steps of their ladders, as 0 until there are any."""
        for pool in pools:
            if pool.ladder is not None:
                self.ladders.know_pool(pool.name)
            for lane in SERVED_LANES:
                self.residence.of(pool.name, lane)

    def know_replicas(self, replicas: Iterable[ReplicaState]) -> None:
        """Export errors and bad signals of these replicas and mismatches of their pools as 0 until there are any."""
        for replica in replicas:
            self.count_mismatches.of(replica.pool)
            for equal in EQUAL.values():
                self.served_counts.of(replica.name, equal)
            for kind in UpstreamErrorKind:
                self.upstream_errors.of(replica.name, kind)
            for signal in Signal:
                self.signals.of(replica.name, signal)

    def _define_requests(self) -> None:
        self.requests = self._counter(
            "llmshed_requests_total",
            "Requests that ended, by what admission decided and why they were not served.",
            ("lane", "decision", "reason"),
        )
        self.would = self._counter(
            "llmshed_would_total",
            "Requests let through in observe mode, by what was decided and why they would not have been served.",
            ("lane", "decision", "reason"),
        )
        self.endings = self._counter(
            "llmshed_endings_total", "Requests that ended, by how they ended.", ("lane", "ending")
        )
        self.first_arrivals = self._counter(
            "llmshed_first_arrivals_total", "Requests that admission was asked about for the first time.", ("lane",)
        )
        self.client_retries = self._counter(
            "llmshed_client_retries_total", "Requests that were seen before, by how it is known.", ("lane", "kind")
        )
        self.routes = self._counter(
            "llmshed_route_requests_total", "Requests that ended, by route; unknown paths are other.", ("route",)
        )
        self.objective_requests = self._counter(
            "llmshed_objective_requests_total",
            "Requests that count against the objectives: served, failed, or refused for want of capacity.",
            ("lane", "priority_class"),
        )
        self.good_requests = self._counter(
            "llmshed_good_requests_total",
            "Requests that met the TTFT and TPOT objectives of their lane.",
            ("lane", "priority_class"),
        )
        self.in_progress = self._gauge(
            "llmshed_requests_in_progress", "Requests between arrival and ending, on any route.", ()
        )
        self.input_tokens = self._histogram(
            "llmshed_input_tokens", "Input tokens of a request, over all its sequences.", ("lane",), TOKEN_BUCKETS
        )
        self.requested_output_tokens = self._histogram(
            "llmshed_requested_output_tokens",
            "Output ceiling of a request's sequence: the one it asked for, else its lane's default.",
            ("lane",),
            TOKEN_BUCKETS,
        )
        self.output_tokens = self._histogram(
            "llmshed_output_tokens", "Output tokens that the engine generated for a request.", ("lane",), TOKEN_BUCKETS
        )

    def _define_times(self) -> None:
        self.counting = self._histogram(
            "llmshed_counting_seconds", "Waiting for and running a request's token count.", (), COUNTING_BUCKETS
        )
        self.residence = self._histogram(
            "llmshed_queue_residence_seconds",
            "How long requests waited in a queue, whatever came of it.",
            ("pool", "lane"),
            RESIDENCE_BUCKETS,
        )
        self.ttft = self._histogram(
            "llmshed_ttft_seconds", "Arrival at the gateway to the first token of a stream.", ("lane",), TTFT_BUCKETS
        )
        self.tpot = self._histogram(
            "llmshed_tpot_seconds", "Mean time per output token after the first, streams only.", ("lane",), TPOT_BUCKETS
        )
        self.duration = self._histogram(
            "llmshed_request_duration_seconds",
            "Arrival to the last byte of a served request.",
            ("lane",),
            DURATION_BUCKETS,
        )
        self.retry_after = self._histogram(
            "llmshed_retry_after_seconds", "Waits that refused clients were told.", ("lane",), RETRY_AFTER_BUCKETS
        )

    def _define_gateway(self) -> None:
        self.upstream_errors = self._counter(
            "llmshed_upstream_errors_total", "Requests that a replica failed, by how.", ("replica", "kind")
        )
        self.count_mismatches = self._counter(
            "llmshed_count_mismatch_total", "Token counts that differed from the engine's own.", ("pool",)
        )
        self.served_counts = self._counter(
            "llmshed_served_counts_total",
            "Prompts that were served, by whether the engine counted them as the gateway did.",
            ("replica", "equal"),
        )
        self.budget_factor = self._gauge(
            "llmshed_replica_budget_factor", "Share of its safe budget that signals leave a replica.", ("replica",)
        )
        self.signals = self._counter(
            "llmshed_replica_signals_total", "Bad signals of a replica, by what was wrong.", ("replica", "signal")
        )
        self.signal_age = self._gauge(
            "llmshed_replica_signal_age_seconds", "How long ago a replica's metrics last told anything.", ("replica",)
        )
        self.metrics_up = self._gauge(
            "llmshed_replica_metrics_up",
            "Whether a replica's metrics told anything when last asked for.",
            ("replica",),
        )
        self.profile_match = self._gauge(
            "llmshed_profile_match",
            "Whether facts of this kind are in this state: a replica against the fingerprint of its profile.",
            ("replica", "kind", "state"),
        )
        self.profile_factor = self._gauge(
            "llmshed_profile_budget_factor",
            "Share of its safe budget that a profile leaves a replica, whether it matches or not.",
            ("replica",),
        )
        self.fastokens_dropped = self._counter(
            "llmshed_fastokens_dropped_total", "Tokenizers that fastokens was found to count otherwise, and left.", ()
        )
        self.counting_queue = self._gauge(
            "llmshed_counting_queue_bytes", "Bytes that wait or run in the counting pool.", ("size",)
        )
        self.reload_successful = self._gauge(
            "llmshed_config_last_reload_successful", "Whether the last attempt to load the configuration succeeded.", ()
        )
        self.reload_timestamp = self._gauge(
            "llmshed_config_last_reload_success_timestamp_seconds",
            "When the configuration in force was loaded, in seconds since the epoch.",
            (),
        )
        self.ladder_files = self._gauge(
            "llmshed_ladder_files_writable",
            "Whether what people do with ladders could be written down when last tried.",
            (),
        )
        self.ladder_files.of().set(1)
        self.ledger_checks = self._counter("llmshed_ledger_checks_total", "Recounts of the ledgers.", ())
        self.ledger_violations = self._counter(
            "llmshed_ledger_violations_total", "Invariants that recounts found broken.", ()
        )
        self.violations = self._gauge("llmshed_invariant_violations", "Invariants that are broken now.", ())
        self.lag = self._histogram("llmshed_loop_lag_seconds", "How late the event loop woke a timer.", (), LAG_BUCKETS)
        self.displaced = self._counter(
            "llmshed_connections_displaced_total", "Client connections closed for want of descriptors.", ("which",)
        )
        self.lines_dropped = self._counter(
            "llmshed_log_lines_dropped_total", "Log and decision lines that disk or pipe did not take.", ()
        )
        self._gauge("llmshed_build_info", "Version of the gateway.", ("version",)).of(__version__).set(1)

    def _start_at_zero(self) -> None:
        _touch(self.requests, ALL_LANES, (Decision.REFUSE,), Reason)
        _touch(self.requests, SERVED_LANES, (Decision.ADMIT,), (NONE, *FAILED_AFTER_ADMISSION))
        _touch(self.requests, SERVED_LANES, (Decision.QUEUE,), (NONE, *LEFT_QUEUE))
        _touch(self.requests, (NONE,), (Decision.ADMIT, NONE), (NONE,))
        _touch(self.would, SERVED_LANES, (Decision.ADMIT, Decision.QUEUE), (NONE,))
        _touch(self.would, ALL_LANES, (Decision.REFUSE,), WOULD_REFUSE)
        _touch(self.endings, ALL_LANES, Ending)
        _touch(self.first_arrivals, ALL_LANES)
        _touch(self.client_retries, ALL_LANES, REPEATED)
        for histogram in (self.ttft, self.tpot, self.duration, self.output_tokens):
            _touch(histogram, SERVED_LANES)
        _touch(self.objective_requests, SERVED_LANES, PriorityClass)
        _touch(self.good_requests, SERVED_LANES, PriorityClass)
        _touch(self.input_tokens, Lane)
        _touch(self.requested_output_tokens, Lane)
        _touch(self.retry_after, ALL_LANES)
        _touch(self.routes, (*KNOWN_ROUTES, OTHER_ROUTE))
        _touch(self.counting_queue, QueueSize)
        _touch(self.displaced, Displaced)

    def _counter(self, name: str, meaning: str, labels: tuple[str, ...]) -> Family[Counter]:
        return Family(Counter(name, meaning, labels, registry=self.registry))

    def _gauge(self, name: str, meaning: str, labels: tuple[str, ...]) -> Family[Gauge]:
        return Family(Gauge(name, meaning, labels, registry=self.registry))

    def _histogram(
        self, name: str, meaning: str, labels: tuple[str, ...], buckets: Iterable[float]
    ) -> Family[Histogram]:
        return Family(Histogram(name, meaning, labels, registry=self.registry, buckets=tuple(buckets)))


def _touch(family: Family[Instrument], *values: Iterable[str]) -> None:
    """Make the child of every combination of label values, so that each is exported as 0."""
    for labels in product(*values):
        family.of(*labels)
