"""What is seen of one replica while it serves, and told to the core as a smaller budget: metrics, stalls, its pace.

Nothing here can take a replica out of service: a metrics endpoint that is dead, slow or absurd sets a gauge, and what
it tells shrinks the budget at most to the governor's floor and for a limited time.
"""

import asyncio
import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

from llmshed.admission.events import BudgetChanged, ReplicaRead
from llmshed.admission.release import UNKNOWN_DECODE_SECONDS_PER_TOKEN, prefill_seconds
from llmshed.admission.request import Request
from llmshed.admission.signals.governor import EXPIRY_SECONDS, BudgetGovernor, shrunk_budget
from llmshed.admission.signals.readings import LedgerView, ReplicaReading, Signal
from llmshed.admission.signals.stall import ExpectedWork, StallDetector
from llmshed.clock import Clock
from llmshed.errors import EngineError
from llmshed.gateway.driver import Driver
from llmshed.gateway.relay.upstream import UpstreamClient, ask
from llmshed.gateway.replicas.likeness import Likeness
from llmshed.gateway.replicas.pool_tools import PoolPlan
from llmshed.gateway.replicas.serving import Serving
from llmshed.profile.pace import PaceWatch, Sent

LOOK_SECONDS = 1.0
"""How often a replica's silence and the way back of its budget are looked at."""
MAX_METRICS_BYTES = 1024 * 1024
"""Longest page of metrics that is read; TGI's own is 100 kB."""

_log = logging.getLogger(__name__)


class SignalObserver(Protocol):
    """Who shows what signals do."""

    def budget_governed(self, replica: str, factor: float) -> None:
        """Show the share of its safe budget that a replica may lend."""

    def signal_seen(self, replica: str, signal: Signal) -> None:
        """Count a bad signal of a replica."""

    def metrics_read(self, replica: str, *, told: bool) -> None:
        """Show whether a replica's metrics told anything when they were last asked for."""

    def signals_aged(self, replica: str, seconds: float) -> None:
        """Show how long ago a replica was last read."""

    def signals_forgotten(self, replica: str) -> None:
        """Show no more of a replica that left."""


@dataclass(frozen=True, slots=True)
class SignalMeans:
    """What a watch works with, the same for all replicas."""

    driver: Driver
    upstream: UpstreamClient
    clock: Clock
    observer: SignalObserver


class SignalWatch:
    """Watches one replica from when it comes up until it goes down.

    The relay tells what runs there; it is told for every piece of every answer, so nothing is worked out there.
    """

    def __init__(self, name: str, plan: PoolPlan, serving: Serving, means: SignalMeans, likeness: Likeness) -> None:
        """Take a replica that has just come up, which the core knows with what its likeness leaves it."""
        self._name = name
        self._plan = plan
        self._serving = serving
        self._means = means
        self._governor = _governor(plan)
        self._stalls = StallDetector()
        self._stalled = False
        self._likeness = likeness
        self._paces = PaceWatch(plan.profile)
        self._kept_ratio = likeness.kept_ratio
        self._told = shrunk_budget(serving.spec, self._kept_ratio)
        self._read_told = ReplicaRead(name, None, None)
        means.observer.budget_governed(name, 1.0)

    def met_anew(self, plan: PoolPlan, serving: Serving) -> None:
        """Go on with other numbers of the same replica, whose whole budget the core has just been given."""
        if plan.profile != self._plan.profile:
            self._governor = _governor(plan)
        if plan.profile != self._plan.profile or serving.info != self._serving.info:
            self._paces = PaceWatch(plan.profile)  # another replica's pace is no news of this one
        self._plan = plan
        self._serving = serving
        self._told = shrunk_budget(serving.spec, self._likeness.kept_ratio)
        self._read_told = ReplicaRead(self._name, None, None)  # the core forgot what it knew as the replica came up
        self._govern(self._means.clock.now())

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._look_on(), name=f"look at {self._name}")
            both.create_task(self._read_on(), name=f"read {self._name}")

    def sent(self, request: Request, output_ceiling_tokens: int | None) -> None:
        """Note that a request is on its way to the replica; without a ceiling its answer may be the longest of all."""
        budget, limits = self._serving.spec.budget, self._serving.spec.limits
        most_tokens = limits.max_total_tokens if output_ceiling_tokens is None else output_ceiling_tokens
        step_seconds = budget.decode_seconds_per_token or UNKNOWN_DECODE_SECONDS_PER_TOKEN
        work = ExpectedWork(
            sequences=request.sequences,
            prefill_seconds=prefill_seconds(request.input_tokens, budget),
            further_seconds=step_seconds if request.streamed else step_seconds * most_tokens,
            streamed=request.streamed,
        )
        now = self._means.clock.now()
        self._stalls.sent(request.key, work, now)
        self._paces.sent(request.key, _pace_of(request, most_tokens), now)

    def heard(self, key: int) -> None:
        """Note that data of a request's answer came."""
        self._stalls.heard(key)
        if key in self._paces.awaited:
            self._paces.heard(key, self._means.clock.now())

    def spoke(self) -> None:
        """Note that the engine said anything else to a request."""
        self._stalls.spoke()

    def ended(self, key: int) -> None:
        """Note that a request runs there no more."""
        self._stalls.ended(key)
        self._paces.ended(key)

    def violations(self) -> tuple[str, ...]:
        """Return the invariants of the governor that do not hold."""
        return tuple(f"{self._name}: {text}" for text in self._governor.check())

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._look(self._means.clock.now())

    def _look(self, now: float) -> None:
        silent_since = self._stalls.silent_since(now)
        if silent_since is not None:
            if not self._stalled:
                self._means.observer.signal_seen(self._name, Signal.STALL)
                _log.warning(
                    "replica_stalled",
                    extra={"replica": self._name, "silent_seconds": round(now - silent_since, 1)},
                )
            self._governor.stalled(now)
        elif self._stalled:
            self._governor.recovered(now)
        self._stalled = silent_since is not None
        self._paces.look(now)
        self._likeness.paced(self._paces.matches, self._paces.ratios)
        due = self._governor.next_change()
        if self._stalled or self._likeness.kept_ratio != self._kept_ratio or (due is not None and due <= now):
            self._govern(now)
        if self._governor.heard_at is not None:
            age_seconds = now - self._governor.heard_at
            self._means.observer.signals_aged(self._name, age_seconds)
            if age_seconds >= EXPIRY_SECONDS:
                self._tell_read(None, None)

    async def _read_on(self) -> None:
        interval_seconds = self._plan.config.upstream.signal_interval_seconds
        while interval_seconds:
            await asyncio.sleep(interval_seconds)
            reading = await self._read()
            told = reading is not None and reading.tells
            self._means.observer.metrics_read(self._name, told=told)
            if reading is not None and told:
                self._judge(reading)

    async def _read(self) -> ReplicaReading | None:
        """Ask for the metrics; None when there are none to be had."""
        url, timeout = self._serving.url + "/metrics", self._plan.config.upstream.probe_timeout_seconds
        try:
            status, body = await ask(self._means.upstream, url, None, timeout, MAX_METRICS_BYTES)
        except EngineError:
            return None
        if status != HTTPStatus.OK:
            return None
        serving = self._serving
        try:
            return serving.engine.read_metrics(body, serving.info.max_batch_total_tokens, self._means.clock.now())
        except Exception:  # noqa: BLE001 - what an engine tells may be a surprise, and no watch may end by one
            _log.exception("reading_crashed", extra={"replica": self._name})
            return None

    def _judge(self, reading: ReplicaReading) -> None:
        now = self._means.clock.now()
        bad = self._governor.hear(reading, self._ledger_view(), now)
        for signal in bad:
            self._means.observer.signal_seen(self._name, signal)
        if Signal.ABSURD not in bad:
            self._tell_read(reading.kv_used_ratio, self._governor.preemptions_over_budget)
        self._govern(now)

    def _tell_read(self, kv_used_ratio: float | None, preemptions_over_budget: float | None) -> None:
        """Tell the core what its pool's ladder may go by, if that has changed."""
        read = ReplicaRead(self._name, kv_used_ratio, preemptions_over_budget)
        if read != self._read_told:
            self._read_told = read
            self._means.driver.tell(read)

    def _ledger_view(self) -> LedgerView:
        replicas = self._means.driver.state().replicas
        equation = next(replica.equation for replica in replicas if replica.name == self._name)
        return LedgerView(
            waiting_sequences=equation.active_sequences - self._stalls.begun_sequences,
            active_ratio=equation.active_tokens / max(1, self._serving.spec.budget.safe_budget_tokens),
        )

    def _govern(self, now: float) -> None:
        """Tell the core and the log what may be lent now, if that has changed."""
        governor, spec = self._governor, self._serving.spec
        self._kept_ratio = self._likeness.kept_ratio
        budget = governor.budget(spec, now, self._kept_ratio)
        self._means.observer.budget_governed(self._name, governor.factor)
        if budget == self._told:
            return
        shrunk = budget.gross_ceiling_tokens < self._told.gross_ceiling_tokens
        self._told = budget
        self._means.driver.tell(BudgetChanged(self._name, budget))
        facts = {
            "replica": self._name,
            "pool": spec.pool,
            "factor": governor.factor,
            "profile_factor": self._kept_ratio,
            "safe_budget_tokens": budget.safe_budget_tokens,
        }
        if shrunk:
            _log.warning("replica_budget_shrunk", extra=facts | {"causes": [str(cause) for cause in governor.causes]})
        elif budget is spec.budget:
            _log.info("replica_budget_restored", extra=facts)


def _pace_of(request: Request, ceiling_tokens: int) -> Sent:
    return Sent(
        prompt_tokens=request.input_tokens,
        sequences=request.sequences,
        ceiling_tokens=ceiling_tokens,
        streamed=request.streamed,
        fresh=not request.continuing,
    )


def _governor(plan: PoolPlan) -> BudgetGovernor:
    """Return a governor with the preemption budget of the pool's profile, if it has one."""
    return BudgetGovernor(None if plan.profile is None else plan.profile.budget.preemptions_per_minute)
