"""The calibration itself: events in, actions out."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.calibration.events import (
    Action,
    Answered,
    Begun,
    Cancel,
    Event,
    FirstToken,
    Read,
    ReadMetrics,
    Send,
    Stop,
    StopReason,
    Woken,
)
from llmshed.calibration.flights import Flights, Role
from llmshed.calibration.idling import Idling
from llmshed.calibration.phases import Phases
from llmshed.calibration.plan import Plan, Shape
from llmshed.calibration.preempting import Preemptions
from llmshed.calibration.results import UNITS, Phase, Progress, Result, SweepResult
from llmshed.calibration.summing import summed
from llmshed.calibration.sweep import Sweep
from llmshed.calibration.watching import Watch
from llmshed.workload.asks import Ask, Outcome, Sample

if TYPE_CHECKING:
    from random import Random

TICK_SECONDS = 1.0
"""How often a level is judged and the engine is read."""
DRAIN_SECONDS = 5.0
"""Time for the engine to notice that its clients are gone, from the end of a phase to the next."""
FOLLOWING = {
    Phase.IDLE: Phase.KV,
    Phase.KV: Phase.PREFILL,
    Phase.PREFILL: Phase.CAP,
    Phase.CAP: Phase.CONFIRM,
    Phase.CONFIRM: Phase.OVER,
    Phase.OVER: Phase.OVER,
}


class Calibration:
    """One run on one replica. The same events at the same times give the same actions.

    Args:
        plan: what is asked for.
        rng: source of every draw.
        phases: makes the sweeps; None for those of a calibration.
        following: the phase that comes after each.

    Invariants, stated by `check`: the sums of what is in flight; nothing is sent after `Stop`.
    """

    def __init__(
        self, plan: Plan, rng: "Random", phases: Phases | None = None, following: Mapping[Phase, Phase] = FOLLOWING
    ) -> None:
        self._plan = plan
        self._rng = rng
        self._flights = Flights()
        self._idling = Idling(plan, rng)
        self._phases = Phases(plan, rng) if phases is None else phases
        self._following = following
        self._phase = Phase.IDLE
        self._sweep: Sweep | None = None
        self._done: list[SweepResult] = []
        self._watch = Watch()
        self._preemptions = Preemptions()
        self._kv_used_ratio = 0.0
        self._outputs: list[int] = []
        self._asked = 0
        self._began_at: float | None = None
        self._now = 0.0
        self._tick_at = 0.0
        self._resume_at = 0.0
        self._stop: Stop | None = None

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take what happened and return what to do, in order; nothing after a `Stop`."""
        self._now = now
        actions: list[Action] = []
        match event:
            case Begun(reading):
                self._begin(reading, now)
            case FirstToken(ask_id):
                self._first_token(ask_id, now)
            case Answered(sample):
                self._answered(sample, now)
            case Read(reading):
                self._read(reading)
            case Woken():
                pass
            case _:
                assert_never(event)
        if self._stop is None and self._began_at is not None:
            self._go_on(now, actions)
        return actions

    def next_wakeup(self) -> float | None:
        """Return when to be woken; None before the beginning and after the end."""
        if self._began_at is None or self._stop is not None:
            return None
        times = [self._tick_at, self._ends_at]
        if self._now < self._resume_at:
            times.append(self._resume_at)
        elif self._sweep is not None and (at := self._sweep.next_at(self._now)) is not None:
            times.append(max(at, self._now))
        return min(times)

    def progress(self) -> Progress:
        """Return where it stands."""
        sweep = self._sweep
        level = float(len(self._flights)) if sweep is None else sweep.level
        left = self._plan.max_duration_seconds if self._began_at is None else max(self._ends_at - self._now, 0.0)
        knee = None if sweep is None else sweep.found
        return Progress(self._phase, level, UNITS[self._phase], knee, left, self._watch.samples)

    def result(self) -> Result:
        """Return what was found so far; a sweep that runs tells what it has."""
        sweeps = list(self._done)
        if self._sweep is not None:
            sweeps.append(self._summed(self._sweep))
        return Result(
            self._idling.result(),
            tuple(sweeps),
            tuple(sorted(self._outputs)),
            self._watch.finished,
            self._watch.refused,
            self._watch.failed,
            None if self._stop is None else self._stop.reason,
            "" if self._stop is None else self._stop.detail,
        )

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold."""
        return self._flights.check()

    @property
    def _ends_at(self) -> float:
        return (self._began_at or 0.0) + self._plan.max_duration_seconds

    def _begin(self, reading: ReplicaReading | None, now: float) -> None:
        self._began_at = self._tick_at = self._resume_at = now
        self._watch.heard(now)
        if reading is not None:
            self._read(reading)

    def _first_token(self, ask_id: str, now: float) -> None:
        self._watch.heard(now)
        flight = self._flights.first_token(ask_id, now)
        if flight is not None and self._sweep is not None:
            self._sweep.first_token(flight, now)

    def _answered(self, sample: Sample, now: float) -> None:
        self._watch.heard(now)
        self._watch.ended(sample)
        flight = self._flights.end(sample.ask.id)
        if flight is None:
            return
        if self._sweep is None:
            self._idling.answered(sample)
            if sample.outcome is not Outcome.FINISHED:
                self._resume_at = now + TICK_SECONDS
            return
        self._sweep.answered(flight, sample, self._flights.mean_level(flight, now), now)
        if self._phase is Phase.CONFIRM and sample.outcome is Outcome.FINISHED:
            self._outputs.append(sample.output_tokens)

    def _read(self, reading: ReplicaReading) -> None:
        if reading.plausible:
            self._kv_used_ratio = reading.kv_used_ratio or 0.0
            self._preemptions.read(reading)

    def _go_on(self, now: float, actions: list[Action]) -> None:
        if not len(self._flights):
            self._watch.heard(now)
        if (wrong := self._watch.wrong(now, len(self._flights))) is not None:
            self._end(*wrong, actions)
            return
        if now >= self._ends_at:
            self._end(StopReason.TIME, "the time given is over", actions)
            return
        if now >= self._tick_at:
            self._tick_at = now + TICK_SECONDS
            actions.append(ReadMetrics())
            if self._sweep is not None and now >= self._resume_at:
                self._sweep.judge(self._flights, now, self._kv_used_ratio, self._rng)
        if self._sweep is not None and self._sweep.over(now):
            self._finish(self._sweep, now, actions)
        if self._stop is None and now >= self._resume_at:
            self._send(now, actions)

    def _send(self, now: float, actions: list[Action]) -> None:
        if self._phase is Phase.IDLE:
            self._send_lone(now, actions)
            return
        if self._sweep is None:
            self._sweep = self._phases.make(self._phase, now, self._ends_at - now)
            self._preemptions.begin(now)
        while (following := self._sweep.next_shape(self._flights, now)) is not None:
            actions.append(Send(self._ask(*following, now)))

    def _send_lone(self, now: float, actions: list[Action]) -> None:
        if len(self._flights):
            return
        shape = self._idling.next_shape()
        if shape is not None:
            actions.append(Send(self._ask(shape, Role.MIX, now)))
            return
        self._phases.idle_tokens_per_second = self._idling.prefill_tokens_per_second or 1.0
        self._turn(now, actions)

    def _ask(self, shape: Shape, role: Role, now: float) -> Ask:
        self._asked += 1
        whole = self._phase is not Phase.CONFIRM
        ask = Ask(f"c{self._asked}", shape.input_tokens, shape.ceiling_tokens, whole, shape.lane)
        self._flights.send(ask, now, role)
        return ask

    def _finish(self, sweep: Sweep, now: float, actions: list[Action]) -> None:
        """Keep what a sweep found, and turn to the next."""
        sweep.knee(self._rng)
        found = self._summed(sweep)
        self._done.append(found)
        self._sweep = None
        low = 0.0 if found.knee is None else found.knee.low
        match self._phase:
            case Phase.KV:
                if not low:
                    self._end(*_why_nothing(sweep), actions)
                    return
                self._phases.ceiling_tokens = low
            case Phase.PREFILL:
                self._phases.tokens_per_second = low or None
            case Phase.CAP:
                self._phases.sequences = low or None
            case _:
                pass
        self._turn(now, actions)

    def _turn(self, now: float, actions: list[Action]) -> None:
        self._phase = self._following[self._phase]
        if self._phase is Phase.OVER:
            self._end(StopReason.DONE, "all sweeps ended", actions)
            return
        self._cancel_all(actions)
        self._resume_at = now + DRAIN_SECONDS

    def _cancel_all(self, actions: list[Action]) -> None:
        for ask_id in self._flights.ids():
            actions.append(Cancel(ask_id))
            self._flights.end(ask_id)

    def _end(self, reason: StopReason, detail: str, actions: list[Action]) -> None:
        if self._sweep is not None:
            self._sweep.knee(self._rng)
            self._done.append(self._summed(self._sweep))
            self._sweep = None
        self._phase = Phase.OVER
        self._cancel_all(actions)
        self._stop = Stop(reason, detail)
        actions.append(self._stop)

    def _summed(self, sweep: Sweep) -> SweepResult:
        return summed(self._phase, sweep, self._preemptions.per_minute(self._now), self._now)


def _why_nothing(sweep: Sweep) -> tuple[StopReason, str]:
    if sweep.broken:
        return StopReason.NOTHING_HOLDS, "not even the lowest level keeps the objectives"
    return StopReason.TIME, "the time given is over before any level was seen to hold"
