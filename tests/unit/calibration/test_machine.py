"""The machine against scripted replicas in virtual time, and against the simulated one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_replica import VirtualReplica
from virtual_run import VirtualRun

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.calibration import Calibration, Objective, Phase, Plan, Shape
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
    StopReason,
    Woken,
)
from llmshed.calibration.events import Stop as Stopped
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.workload.asks import Ask, Outcome, Sample

PLAN = Plan(
    (Shape(300, 60, "interactive"), Shape(100, 120, "interactive")),
    {"interactive": Objective(2.0, 0.1)},
    max_duration_seconds=60.0,
)


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of an ask; None for a time that never comes."""

    first_after: float | None
    ends_after: float | None
    outcome: Outcome = Outcome.FINISHED


class Script:
    """A replica that gives each ask a fate."""

    def __init__(self, plan: Plan, fate: Callable[[Ask, float], Fate]) -> None:
        self.machine = Calibration(plan, Random(1))  # noqa: S311 - no secret
        self.fate = fate
        self.now = 0.0
        self.order = count()
        self.due: list[tuple[float, int, Event]] = []
        self.flying: dict[str, tuple[Ask, float]] = {}
        self.sent: list[tuple[float, Ask]] = []
        self.stop: Stopped | None = None

    def run(self, most_steps: int = 100_000) -> Stopped:
        self.tell(Begun(None))
        for _ in range(most_steps):
            if self.stop is not None:
                return self.stop
            wakeup = self.machine.next_wakeup()
            assert wakeup is not None
            if self.due and self.due[0][0] <= wakeup:
                at, _, event = heappop(self.due)
                self.now = max(at, self.now)
                if self._counts(event):
                    self.tell(event)
            else:
                self.now = max(wakeup, self.now)
                self.tell(Woken())
        raise AssertionError("it never stops")

    def tell(self, event: Event) -> None:
        for action in self.machine.handle(event, self.now):
            assert self.stop is None, "an action after Stop"
            self.perform(action)
        assert self.machine.check() == ()

    def perform(self, action: Action) -> None:
        match action:
            case Send(ask):
                self.sent.append((self.now, ask))
                self.flying[ask.id] = (ask, self.now)
                fate = self.fate(ask, self.now)
                first = None if fate.first_after is None else self.now + fate.first_after
                if first is not None:
                    heappush(self.due, (first, next(self.order), FirstToken(ask.id)))
                if fate.ends_after is not None:
                    self.push_end(ask, first, self.now + fate.ends_after, fate.outcome)
            case Cancel(ask_id):
                ask, at = self.flying[ask_id]
                heappush(
                    self.due,
                    (self.now, next(self.order), Answered(self.sample(ask, at, None, self.now, Outcome.CANCELLED))),
                )
            case ReadMetrics():
                pass
            case Stopped():
                self.stop = action

    def push_end(self, ask: Ask, first: float | None, at: float, outcome: Outcome) -> None:
        heappush(self.due, (at, next(self.order), Answered(self.sample(ask, self.now, first, at, outcome))))

    def sample(self, ask: Ask, sent: float, first: float | None, at: float, outcome: Outcome) -> Sample:
        finished = outcome is Outcome.FINISHED and first is not None
        times = (first, at) if finished and first is not None else ()
        return Sample(ask, sent, sent, times, at, outcome, 200, ask.ceiling_tokens if finished else 0, "told")

    def _counts(self, event: Event) -> bool:
        match event:
            case Answered(sample):
                return self.flying.pop(sample.ask.id, None) is not None
            case FirstToken(ask_id):
                return ask_id in self.flying
            case _:
                return True


def well(ask: Ask, now: float) -> Fate:  # noqa: ARG001 - another fate looks at it
    return Fate(0.1, 0.1 + 0.02 * ask.ceiling_tokens)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 0.4), st.floats(0, 0.4), st.floats(0, 0.2))
def test_it_always_stops_in_time_and_its_books_are_right(seed: int, refused: float, failed: float, lost: float) -> None:
    rng = Random(seed)  # noqa: S311 - no secret

    def fate(ask: Ask, now: float) -> Fate:  # noqa: ARG001 - the fate is chance alone
        chance = rng.random()
        if chance < refused:
            return Fate(None, 0.01, Outcome.REFUSED)
        if chance < refused + failed:
            return Fate(None, 0.05, Outcome.FAILED)
        if chance < refused + failed + lost:
            return Fate(None, None)
        return Fate(rng.random(), 1 + 3 * rng.random())

    script = Script(replace(PLAN, max_duration_seconds=20.0), fate)
    script.run()
    assert script.now <= 20.0
    result = script.machine.result()
    assert result.stop is not None
    assert result.finished + result.refused + result.failed <= len(script.sent)
    assert len({ask.id for _, ask in script.sent}) == len(script.sent)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_never_more_is_reserved_than_the_level_or_one_ask(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - no secret
    plan = replace(PLAN, max_duration_seconds=40.0)

    def fate(ask: Ask, now: float) -> Fate:  # noqa: ARG001 - the fate is that of the crowd
        first = 0.05 if len(script.flying) < 30 else 3.0
        return Fate(first, first + ask.ceiling_tokens / (100 + 40 * rng.random()))

    script = Script(plan, fate)
    level, reserved = 0.0, 0
    perform = script.perform

    def watched(action: Action) -> None:
        nonlocal level, reserved
        perform(action)
        told = script.machine.progress()
        if isinstance(action, Send) and told.phase is Phase.KV:
            reserved = sum(ask.reserved_tokens for ask, _ in script.flying.values())
            level = max(level, told.level)
            assert reserved <= level or len(script.flying) == 1

    script.perform = watched  # type: ignore[method-assign]
    script.run()
    assert level > 0


@pytest.mark.parametrize(
    ("fate", "reason"),
    [
        (lambda _ask, _now: Fate(None, 0.01, Outcome.REFUSED), StopReason.REFUSES),
        (lambda _ask, _now: Fate(None, 0.01, Outcome.FAILED), StopReason.FAILS),
    ],
)
def test_a_replica_that_takes_nothing_ends_the_run_with_the_reason(
    fate: Callable[[Ask, float], Fate], reason: StopReason
) -> None:
    script = Script(replace(PLAN, max_duration_seconds=600.0), fate)
    stop = script.run()
    assert stop.reason is reason
    assert "told" in stop.detail
    assert script.machine.result().idle is None
    assert len(script.sent) <= 40


def test_a_replica_that_dies_in_the_middle_leaves_what_was_measured() -> None:
    script = Script(PLAN, lambda ask, now: well(ask, now) if now < 30 else Fate(None, 0.01, Outcome.FAILED))
    assert script.run().reason is StopReason.FAILS
    result = script.machine.result()
    assert result.idle is not None
    assert result.finished > 50
    assert result.sweep(Phase.KV) is not None
    assert script.now < 40


def test_a_replica_that_goes_silent_is_given_up() -> None:
    plan = replace(PLAN, max_duration_seconds=900.0)
    script = Script(plan, lambda ask, now: well(ask, now) if now < 30 else Fate(None, None))
    assert script.run().reason is StopReason.SILENT
    assert 140 < script.now < 170
    assert script.machine.result().idle is not None


def test_when_its_time_is_over_it_closes_what_runs_and_says_so() -> None:
    script = Script(PLAN, well)
    assert script.run().reason is StopReason.TIME
    assert script.now == pytest.approx(60.0)
    assert script.machine.next_wakeup() is None
    assert script.machine.progress().phase is Phase.OVER


def test_the_same_events_give_the_same_actions() -> None:
    runs = [Script(PLAN, well) for _ in range(2)]
    for script in runs:
        script.run()
    assert runs[0].sent == runs[1].sent


def test_nothing_happens_before_the_beginning() -> None:
    machine = Calibration(PLAN, Random(1))  # noqa: S311 - no secret
    assert machine.next_wakeup() is None
    assert machine.handle(Woken(), 5.0) == []
    assert machine.progress().seconds_left == 60.0


@pytest.mark.slow
def test_a_simulated_replica_is_calibrated_within_its_time() -> None:
    """49,151 tokens of KV bind before anything else; 25 ms a step and 8,000 tokens a second of prefill."""
    plan = replace(PLAN, max_duration_seconds=900.0, first_level_tokens=5000, max_input_tokens=8000)
    machine = Calibration(plan, Random(1))  # noqa: S311 - no secret
    replica = VirtualReplica(ReplicaParameters(max_concurrent_requests=1024), lambda ask: ask.ceiling_tokens)
    ran = VirtualRun(machine, replica).run()
    result = machine.result()
    assert ran.stop.reason is StopReason.DONE
    assert ran.seconds < 900
    assert result.idle is not None
    assert result.idle.decode_step_seconds == pytest.approx(0.0251)
    assert [sweep.phase for sweep in result.sweeps] == [Phase.KV, Phase.PREFILL, Phase.CAP, Phase.CONFIRM]
    assert all(sweep.knee is not None and sweep.knee.low > 0 for sweep in result.sweeps)
    kv = result.sweep(Phase.KV)
    assert kv is not None
    assert kv.knee is not None
    assert kv.knee.low < kv.knee.point <= 1.05 * kv.knee.low
    assert kv.knee.high is None or kv.knee.high <= 1.1 * kv.knee.low  # None: levels above it were not seen to break


def test_readings_that_cannot_be_true_are_not_looked_at() -> None:
    script = Script(PLAN, well)
    script.tell(Begun(None))
    script.tell(Read(ReplicaReading(0.0, kv_used_ratio=-1.0)))
    assert script.machine.result().stop is None
