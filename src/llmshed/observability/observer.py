"""What the rest of the gateway tells about itself, put into metrics, the decision log and the log."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from prometheus_client import Metric, generate_latest

from llmshed.admission.echo import Arrival
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.signals.readings import Signal
from llmshed.admission.state import ControllerState
from llmshed.ladder.standing import Step
from llmshed.observability.decisions import DecisionLine, DecisionLog
from llmshed.observability.endings import Ending
from llmshed.observability.goodput import Objective, counted_lane, met_objectives
from llmshed.observability.ladder_gauges import Evaluations
from llmshed.observability.metrics import EQUAL, NONE, Displaced, Metrics, QueueSize, UpstreamErrorKind
from llmshed.observability.routes import route_label
from llmshed.profile.comparison import Kind, Match

_log = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Of a scrape's text."""


class Observer:
    """The one way into the metrics; every method is quick enough for the event loop."""

    def __init__(self, metrics: Metrics, decision_log: DecisionLog, objectives: Mapping[Lane, Objective]) -> None:
        """Keep the instruments; `objectives` come from `goodput.objectives_of`."""
        self._metrics = metrics
        self._decision_log = decision_log
        self._objectives = objectives
        self._violations: tuple[str, ...] = ()

    def request_began(self) -> None:
        """Count a request in; `request_ended` is owed for it."""
        self._metrics.in_progress.of().inc()

    def request_ended(self, decision: DecisionLine) -> None:
        """Count a request out and write its decision line."""
        metrics = self._metrics
        lane = decision.lane or NONE
        metrics.in_progress.of().dec()
        metrics.requests.of(lane, decision.decision or NONE, decision.reason or NONE).inc()
        if decision.would is not None:
            metrics.would.of(lane, decision.would, decision.would_reason or NONE).inc()
        metrics.endings.of(lane, decision.ending).inc()
        metrics.routes.of(route_label(decision.route)).inc()
        self._observe_arrival(decision)
        self._observe_counts(decision)
        self._observe_times(decision)
        metrics.ladders.ended(decision)
        self._judge(decision)
        self._decision_log.write(decision)

    def loop_lagged(self, seconds: float) -> None:
        """Note how much later than asked a timer of the event loop ran."""
        self._metrics.lag.of().observe(max(seconds, 0.0))

    def connection_displaced(self, which: Displaced) -> None:
        """Note a client connection that was closed because there are more than the process can serve."""
        self._metrics.displaced.of(which).inc()

    def self_checked(self, violations: tuple[str, ...]) -> None:
        """Note a recount of the ledgers and the invariants that it found broken; log each new one."""
        self._metrics.ledger_checks.of().inc()
        self._metrics.ledger_violations.of().inc(len(violations))
        self._metrics.violations.of().set(len(violations))
        for violation in violations:
            if violation not in self._violations:
                _log.error("invariant_broken", extra={"violation": violation})
        self._violations = violations

    def config_loaded(self, version: str, objectives: Mapping[Lane, Objective], wall: float) -> None:
        """Note that a configuration is in force since `wall`, in seconds since the epoch."""
        self._objectives = objectives
        self._metrics.state.config_version = version
        self._metrics.reload_successful.of().set(1)
        self._metrics.reload_timestamp.of().set(wall)

    def config_refused(self) -> None:
        """Note that a configuration was refused and the earlier one is kept."""
        self._metrics.reload_successful.of().set(0)

    def ladder_stepped(self, step: Step) -> None:
        """Count a change of the rung in force on a pool."""
        self._metrics.ladders.stepped(step)

    def ladder_files(self, *, writable: bool) -> None:
        """Show whether state and audit of ladders could be written when last tried."""
        self._metrics.ladder_files.of().set(writable)

    def upstream_failed(self, replica: str, kind: UpstreamErrorKind) -> None:
        """Count a request that a replica failed."""
        self._metrics.upstream_errors.of(replica, kind).inc()

    def budget_governed(self, replica: str, factor: float) -> None:
        """Set the share of its safe budget that signals leave a replica."""
        self._metrics.budget_factor.of(replica).set(factor)

    def signal_seen(self, replica: str, signal: Signal) -> None:
        """Count a bad signal of a replica."""
        self._metrics.signals.of(replica, signal).inc()

    def metrics_read(self, replica: str, *, told: bool) -> None:
        """Note whether a replica's metrics told anything when they were last asked for."""
        self._metrics.metrics_up.of(replica).set(told)

    def signals_aged(self, replica: str, seconds: float) -> None:
        """Set how long ago a replica's metrics last told anything."""
        self._metrics.signal_age.of(replica).set(seconds)

    def signals_forgotten(self, replica: str) -> None:
        """Show no gauge of signals of a replica that serves no more."""
        for gauge in (self._metrics.budget_factor, self._metrics.signal_age, self._metrics.metrics_up):
            gauge.forget(replica)

    def profile_compared(self, replica: str, kind: Kind, match: Match) -> None:
        """Set how one kind of facts of a replica compares with its profile."""
        for state in Match:
            self._metrics.profile_match.of(replica, kind, state).set(state is match)

    def profile_kept(self, replica: str, ratio: float) -> None:
        """Set the share of its safe budget that the comparison with its profile leaves a replica."""
        self._metrics.profile_factor.of(replica).set(ratio)

    def profile_forgotten(self, replica: str) -> None:
        """Show no comparison of a replica."""
        self._metrics.profile_factor.forget(replica)
        for kind in Kind:
            for state in Match:
                self._metrics.profile_match.forget(replica, kind, state)

    def count_mismatched(self, pool: str) -> None:
        """Count a prompt that the engine counted otherwise."""
        self._metrics.count_mismatches.of(pool).inc()

    def count_compared(self, replica: str, *, equal: bool) -> None:
        """Count a prompt that was served and that the engine counted too."""
        self._metrics.served_counts.of(replica, EQUAL[equal]).inc()

    def fastokens_dropped(self) -> None:
        """Count a tokenizer whose fast backend counted otherwise than the exact one; any thread may call it."""
        self._metrics.fastokens_dropped.of().inc()

    def counting_queue(self, size: QueueSize, queued_bytes: int) -> None:
        """Set the bytes that wait or run in one queue of the counting pool."""
        self._metrics.counting_queue.of(size).set(queued_bytes)

    def lines_dropped(self, lines: int) -> None:
        """Count lines that disk or pipe did not take; any thread may call it."""
        self._metrics.lines_dropped.of().inc(lines)

    async def scrape(
        self,
        state: ControllerState,
        configured: tuple[tuple[str, str], ...] = (),
        evaluations: Evaluations = MappingProxyType({}),
    ) -> bytes:
        """Return all metrics as text, giving way to the event loop after each metric.

        Args:
            state: the ledgers.
            configured: name and pool of every replica of the configuration.
            evaluations: what is wrong with those of the ladders.
        """
        self._metrics.state.configured = configured
        self._metrics.state.evaluations = evaluations
        parts: list[bytes] = []
        for part in self.slices(state):
            parts.append(part)
            await asyncio.sleep(0)
        return b"".join(parts)

    def slices(self, state: ControllerState) -> Iterator[bytes]:
        """Yield each metric as text.

        The gauges of the ledgers all come from `state`, so a page is consistent in what has to add up.
        """
        self._metrics.state.state = state
        self._metrics.know_replicas(state.replicas)
        self._metrics.know_pools(state.pools)
        for metric in self._metrics.registry.collect():
            yield generate_latest(_Single(metric))

    def _observe_arrival(self, decision: DecisionLine) -> None:
        lane, arrival = decision.lane or NONE, decision.arrival
        if arrival is Arrival.FIRST:
            self._metrics.first_arrivals.of(lane).inc()
        elif arrival is not None:
            self._metrics.client_retries.of(lane, arrival).inc()

    def _observe_counts(self, decision: DecisionLine) -> None:
        metrics = self._metrics
        lane = decision.lane
        if lane is None:
            return
        if decision.input_tokens is not None:
            metrics.input_tokens.of(lane).observe(decision.input_tokens)
        requested = decision.asked_output_tokens
        if requested is None:
            requested = decision.output_ceiling_tokens
        if requested is not None:
            metrics.requested_output_tokens.of(lane).observe(requested)
        if decision.output_tokens is not None:
            metrics.output_tokens.of(lane).observe(decision.output_tokens)

    def _observe_times(self, decision: DecisionLine) -> None:
        metrics, waits = self._metrics, decision.waits
        if waits.counting_seconds is not None:
            metrics.counting.of().observe(waits.counting_seconds)
        if decision.retry_after_seconds is not None:
            metrics.retry_after.of(decision.lane or NONE).observe(decision.retry_after_seconds)
        if decision.lane is None:
            return
        waited = decision.estimated_queue_seconds is not None and decision.pool is not None
        if waited and waits.queue_seconds is not None:
            metrics.residence.of(decision.pool or NONE, decision.lane).observe(waits.queue_seconds)
        if waits.ttft_seconds is not None:
            metrics.ttft.of(decision.lane).observe(waits.ttft_seconds)
        if waits.tpot_seconds is not None:
            metrics.tpot.of(decision.lane).observe(waits.tpot_seconds)
        if waits.total_seconds is not None and decision.ending is Ending.FINISHED:
            metrics.duration.of(decision.lane).observe(waits.total_seconds)

    def _judge(self, decision: DecisionLine) -> None:
        good = met_objectives(decision, self._objectives)
        if good is None or decision.drill is not None:
            return
        labels = (counted_lane(decision), decision.priority_class or PriorityClass.NORMAL)
        self._metrics.objective_requests.of(*labels).inc()
        if good:
            self._metrics.good_requests.of(*labels).inc()
            self._metrics.ladders.good(decision)


class _Single:
    """One metric in the shape that the library renders."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> list[Metric]:
        return [self._metric]
