"""One sweep: levels held one after the other until the knee is known, or its time is over."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from llmshed.calibration.drawing import Draws
from llmshed.calibration.dwell import Dwell, Verdict
from llmshed.calibration.flights import Flight, Flights, Role
from llmshed.calibration.gates import Gate
from llmshed.calibration.intervals import ALLOWED_LATE_RATIO
from llmshed.calibration.observations import MARGIN_RATIO, Knee, Observations
from llmshed.calibration.plan import Plan, Shape
from llmshed.calibration.search import LevelSearch, Stage
from llmshed.workload.asks import Outcome, Sample

if TYPE_CHECKING:
    from random import Random

FILL_TOKENS = 4096
"""Prompt tokens that wait at once while a level is being filled, so that what runs is not starved for long."""
JUMP_RATIO = 1.05
"""A larger step up or down spoils what runs meanwhile; it is not judged. Nor is what is left of the bisection, which
ran beside probes."""
PROGRESS_RATIO = 0.01
STALLED_SECONDS = 2.0
"""Without progress by that part of the level for so long the engine takes in nothing more at this pace: what is left of
the level is sent at once, and what then waits too long shows that it is broken."""
PROBE_OUTPUT_TOKENS = 33
PROBE_EVERY = {Stage.CLIMB: 6, Stage.NARROW: 24}
"""One in so many requests is a probe, until the knee is about known; short answers mean more prompts, so that with many
of them the knee itself would be lower."""
ENOUGH_OBSERVED = 80
"""First tokens, and answers, within 1 % of the knee without which its interval says little."""
SOONER_RATIO = 0.5
"""Part of the least stay after which a level may be taken to be broken."""
BACK_OFF_SECONDS = 0.5
"""Pause after the engine refused; its own advice is for clients that do not know how much they have there."""


@dataclass(frozen=True, slots=True)
class SweepTimes:
    """How long a sweep may stay, in seconds.

    Args:
        whole: in all.
        climb: at a level of the climb, at most.
        narrow: at a level of the bisection, at most.
        back: at a level that is returned to; an engine that takes more than its KV holds fills up slowly, and with half
            of this the knee of the simulated vLLM came out 2 % to 5 % too high.
        least: before a level is taken to hold, at least; it may be taken to be broken in half of it.
        settle: from a level's being reached to the first request that is judged.
    """

    whole: float
    climb: float = 20.0
    narrow: float = 40.0
    back: float = 45.0
    least: float = 0.0
    settle: float = 0.0


class Sweep:
    """Holds levels and judges them.

    Args:
        plan: objectives.
        gate: what a level is.
        draws: what is sent.
        search: which level comes next.
        times: bounds of its time.
        now: when it begins.
        aged: whether a level is reached with requests that are half done, and its pace is told by probes; without it
            all answers are short, and tell the pace themselves.
    """

    def __init__(
        self, plan: Plan, gate: Gate, draws: Draws, search: LevelSearch, times: SweepTimes, now: float, *, aged: bool
    ) -> None:
        self.late = Observations()
        self.slow = Observations()
        self.began_at = now
        self.sent = 0
        self.found: Knee | None = None
        self._estimated: Knee | None = None
        self.paces: dict[float, float] = {}
        """Mean TPOT in seconds, by level."""
        self.broken = False
        """Whether any level was taken to be broken."""
        self.broke: str | None = None
        """The objective whose knee is the lower one, as in `TTFT`; None while no level broke."""
        self._answer_seconds = 0.0
        self._answers = 0
        self._output_tokens = self._ceiling_tokens = 0
        self._plan = plan
        self._gate = gate
        self._draws = draws
        self._search = search
        self._times = times
        self._aged = aged
        self._dwell: Dwell | None = None
        self._judge_from = now
        self._quiet_until = now
        self._filling = aged
        self._reserved_mark, self._mark_at = 0.0, now
        self._next = self._draw()
        self._bounds: dict[str | None, float] = {lane: plan.ttft_bound_seconds(lane) for lane in plan.objectives}

    @property
    def level(self) -> float:
        """Return the level that is held or being reached."""
        return self._search.level

    @property
    def ends_at(self) -> float:
        """Return when its time is over."""
        return self.began_at + self._times.whole

    def over(self, now: float) -> bool:
        """Say whether it has ended."""
        return self._search.stage is Stage.DONE or now >= self.ends_at

    def next_shape(self, flights: Flights, now: float) -> tuple[Shape, Role] | None:
        """Return what to send now, and what for; None when nothing may go. Call until None."""
        if now < self._quiet_until:
            if self._dwell is None:  # it cannot be reached: that is to be judged, too
                self._reach(flights, now)
            return None
        crowded = self._filling and self._crowded(flights, now)
        shape, role = self._next
        if crowded or not self._gate.may_send(shape, flights, self.level, now):
            if self._dwell is None and not crowded and not self._gate.over(flights, self.level):
                self._reach(flights, now)
            return None
        self._gate.sent(shape)
        self.sent += 1
        self._next = self._draw()
        return shape, role

    def next_at(self, now: float) -> float | None:
        """Return when time alone lets something be sent."""
        return self._quiet_until if now < self._quiet_until else self._gate.next_at(self.level, now)

    def first_token(self, flight: Flight, now: float) -> None:
        """Judge the TTFT of an ask."""
        if flight.role is Role.FILL or flight.sent_at < self._judge_from:
            return
        ratio = (now - flight.sent_at) / self._bounds[flight.ask.lane]
        self.late.add(now, flight.level, late=ratio > 1, near_knee=self._near_knee)
        if self._dwell is not None and flight.sent_at >= self._dwell.since:
            self._dwell.first_tokens.append(ratio)

    def answered(self, flight: Flight, sample: Sample, mean_level: float, now: float) -> None:
        """Judge the TPOT of an ask that ended, or its refusal."""
        if sample.outcome is Outcome.CANCELLED:
            return
        if sample.outcome is Outcome.REFUSED:
            self._quiet_until = now + BACK_OFF_SECONDS
        if sample.outcome is not Outcome.FINISHED:
            self.late.add(now, self.level, late=True, near_knee=self._near_knee)
            if self._dwell is not None:
                self._dwell.refused += 1
            return
        tpot, lane = sample.tpot_seconds, flight.ask.lane
        if flight.role is Role.FILL or flight.sent_at < self._judge_from or tpot is None or lane is None:
            return
        ratio = tpot / self._plan.tpot_bound_seconds(lane)
        if flight.role is Role.MIX:
            self._output_tokens += sample.output_tokens
            self._ceiling_tokens += flight.ask.ceiling_tokens
            if self._dwell is not None and flight.sent_at >= self._dwell.since:
                self._dwell.answers.append(ratio)
            self.slow.add(now, mean_level, late=ratio > 1, near_knee=self._near_knee)
            if self._near_knee:
                self._answer_seconds += tpot
                self._answers += 1
        pace_told = flight.role is Role.PROBE or not self._aged
        if pace_told and self._dwell is not None and flight.sent_at >= self._dwell.since:
            self._dwell.paces.append(ratio)
            self._dwell.tpot_seconds.append(tpot)

    def judge(self, flights: Flights, now: float, kv_used_ratio: float, rng: "Random") -> None:
        """Give a verdict on the level if there is one, and go on to the next level."""
        dwell = self._dwell
        if dwell is None:
            return
        match self._search.stage:
            case Stage.CLIMB:
                overdue = flights.overdue(dwell.since, now, self._bounds)
                verdict = dwell.climbing(overdue, now, self._times.climb)
            case Stage.NARROW:
                overdue = flights.overdue(self._judge_from, now, self._bounds)
                seen, late = self.late.near(self.level)
                counted = (seen + overdue, late + overdue)
                verdict = dwell.narrowing(counted, self.slow.near(self.level), now, self._times.narrow)
            case _:
                if now - dwell.since >= self._times.back:
                    self.knee(rng)
                    self._return_to(self._estimated, now)
                return
        least = self._times.least * (1.0 if verdict is Verdict.HELD else SOONER_RATIO)
        if verdict is Verdict.OPEN or now - dwell.since < least:
            return
        if dwell.paces:
            self.paces[self.level] = fmean(dwell.tpot_seconds)
        if verdict is Verdict.HELD:
            pressure = max(dwell.pressure, kv_used_ratio)
            self._move(lambda: self._search.held(pressure), now)
        else:
            self.broken = True
            self._move(self._search.broke, now)

    def knee(self, rng: "Random") -> Knee | None:
        """Return the lower of both knees, of TTFT and of TPOT, and keep it as `found`; None when no level held."""
        by_objective = {
            name: None if self._search.by_verdict else seen.knee(ALLOWED_LATE_RATIO, rng)
            for name, seen in (("TTFT", self.late), ("TPOT", self.slow))
        }
        knees = {name: knee for name, knee in by_objective.items() if knee is not None}
        if len(knees) < len(by_objective):
            self.found = self._estimated = self._search.knee()
            return self.found
        name = min(knees, key=lambda name: knees[name].point)
        self._estimated = knees[name]
        self.found = knees[name] if knees[name].low else self._by_all(knees[name])
        self.broke = None if self.found.high is None else name
        return self.found

    def _by_all(self, knee: Knee) -> Knee:
        """Return a knee of all that was seen, the climb too, where none of the levels that were returned to held."""
        lows = [seen.crossing(ALLOWED_LATE_RATIO) for seen in (self.late, self.slow)]
        return replace(knee, low=min(*(MARGIN_RATIO * low for low in lows), knee.point))

    def _return_to(self, knee: Knee | None, now: float) -> None:
        if knee is None:
            return
        seen = min(observed.near(knee.point)[0] for observed in (self.late, self.slow))
        self._move(lambda: self._search.return_to(knee, enough=seen >= ENOUGH_OBSERVED), now)

    @property
    def pace_seconds(self) -> float | None:
        """Return the mean TPOT near the knee; None when no answer ended there."""
        return self._answer_seconds / self._answers if self._answers else None

    @property
    def output_ratio(self) -> float | None:
        """Return the tokens of whole answers as a part of their ceilings; None when none ended."""
        return self._output_tokens / self._ceiling_tokens if self._ceiling_tokens else None

    @property
    def _near_knee(self) -> bool:
        return self._search.stage in {Stage.RETURN, Stage.DONE}

    def _move(self, decide: Callable[[], None], now: float) -> None:
        before, stage = self.level, self._search.stage
        decide()
        if self.level == before:
            return
        self._dwell = None
        self._filling = self._aged and self.level > before
        self._reserved_mark, self._mark_at = 0.0, now
        self._next = self._draw()
        returns = self._search.stage is Stage.RETURN and stage is not Stage.RETURN
        if returns or not 1 / JUMP_RATIO <= self.level / before <= JUMP_RATIO:
            self._judge_from = float("inf")

    def _reach(self, flights: Flights, now: float) -> None:
        self._dwell = Dwell(now + self._times.settle)
        flights.hold(self.level, now)
        if self._filling:
            self._filling = False
            self._next = self._draw()
        self._judge_from = min(self._judge_from, self._dwell.since)

    def _crowded(self, flights: Flights, now: float) -> bool:
        if flights.reserved_tokens > self._reserved_mark + PROGRESS_RATIO * self.level:
            self._reserved_mark, self._mark_at = flights.reserved_tokens, now
        return flights.waiting_input_tokens >= FILL_TOKENS and now - self._mark_at < STALLED_SECONDS

    def _draw(self) -> tuple[Shape, Role]:
        if self._filling:
            return self._draws.half_done(self._plan.max_input_tokens), Role.FILL
        shape = self._draws.fresh()
        every = PROBE_EVERY.get(self._search.stage) if self._aged else None
        if every is not None and self.sent % every == 0:
            return replace(shape, ceiling_tokens=min(shape.ceiling_tokens, PROBE_OUTPUT_TOKENS)), Role.PROBE
        return shape, Role.MIX
