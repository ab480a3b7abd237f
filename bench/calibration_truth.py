"""The truth of each case, by an exhaustive sweep without noise: `python bench/calibration_truth.py`.

Levels of reserved tokens rise by 1 %, outputs run to their ceiling, and each level starts from an idle replica that is
filled with requests that are half done. After `WARM_SECONDS` the shares of first tokens and of answers beyond their
bounds are counted over `ANSWERS` answers. The truth is the highest level at which neither is above 5 %; the sweep
begins where all is well and ends after `BROKEN_IN_A_ROW` levels that broke.
"""

import csv
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from calibration_cases import LANE, ROOT, Case, cases
from virtual_replica import VirtualReplica

from llmshed.calibration.drawing import Draws
from llmshed.calibration.flights import Flights, Role
from llmshed.calibration.intervals import ALLOWED_LATE_RATIO
from llmshed.calibration.plan import Plan
from llmshed.calibration.sweep import FILL_TOKENS
from llmshed.simulation.building import Parameters
from llmshed.workload.asks import Ask

TRUTH = ROOT / "bench" / "data" / "calibration_truth.csv"
Natural = Callable[[Ask], int]
STEP = 1.01
ANSWERS = 3000
WARM_SECONDS = 30.0
STALLED_SECONDS = 4.0
"""Time without progress after which what is left of a level is sent at once."""
BROKEN_IN_A_ROW = 2
BEGIN_RATIO = 0.95
"""Part of a rough knee, found by bisection with few answers, at which the sweep begins; lower by as much while that
breaks."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares beyond their bounds at one level, and the requests that it took."""

    late: float
    slow: float
    requests: int

    @property
    def held(self) -> bool:
        """Say whether both objectives are kept."""
        return max(self.late, self.slow) <= ALLOWED_LATE_RATIO


class Level:
    """One level on one idle replica."""

    def __init__(self, plan: Plan, parameters: Parameters, natural: Natural | None, level: float) -> None:
        """Stand before an idle replica."""
        self._plan = plan
        self._level = level
        self._whole = natural is None
        self._replica = VirtualReplica(parameters, natural or _never_asked)
        self._draws = Draws(plan.mix, Random("bench/calibration/truth"))  # noqa: S311 - order of requests
        self._flights = Flights()
        self._filling = True
        self._mark = (0.0, 0.0)
        self._next = self._draws.half_done(plan.max_input_tokens)
        self._sent = 0

    def shares(self, answers: int) -> Shares:
        """Hold the level until so many answers were counted."""
        late = slow = firsts = ended = 0
        from_at = float("inf")
        bounds = self._plan.ttft_bound_seconds(LANE), self._plan.tpot_bound_seconds(LANE)
        now = 0.0
        while ended < answers:
            self._send(now)
            if not self._filling and from_at == float("inf"):
                from_at = now + WARM_SECONDS
            step_at = self._replica.model.next_change_at
            if step_at is None:
                raise RuntimeError(f"the replica stands still at {self._level:g} tokens")
            now = step_at
            for told in self._replica.advance(now):
                if isinstance(told, str):
                    flight = self._flights.first_token(told, now)
                    if flight is not None and flight.role is Role.MIX and now > from_at:
                        firsts += 1
                        late += now - flight.sent_at > bounds[0]
                    continue
                flight = self._flights.end(told.ask.id)
                if flight is not None and flight.role is Role.MIX and now > from_at and told.tpot_seconds is not None:
                    ended += 1
                    slow += told.tpot_seconds > bounds[1]
        return Shares(late / max(firsts, 1), slow / ended, self._sent)

    def _send(self, now: float) -> None:
        while not self._crowded(now):
            if self._flights.reserved_tokens + self._next.reserved_tokens > self._level and len(self._flights):
                if self._filling:
                    self._filling = False
                    self._next = self._draws.fresh()
                return
            shape = self._next
            ask = Ask(str(self._sent), shape.input_tokens, shape.ceiling_tokens, self._whole, shape.lane)
            self._flights.send(ask, now, Role.FILL if self._filling else Role.MIX)
            if (refused := self._replica.send(ask, now)) is not None:
                raise RuntimeError(f"the replica refuses at {self._level:g} tokens: {refused.detail}")
            self._sent += 1
            self._next = self._draws.half_done(self._plan.max_input_tokens) if self._filling else self._draws.fresh()

    def _crowded(self, now: float) -> bool:
        """Say whether a fill waits for its prompts, as in a calibration."""
        if not self._filling:
            return False
        if self._flights.reserved_tokens > self._mark[0] + 0.01 * self._level:
            self._mark = (self._flights.reserved_tokens, now)
        return self._flights.waiting_input_tokens >= FILL_TOKENS and now - self._mark[1] < STALLED_SECONDS


def _never_asked(ask: Ask) -> int:
    raise RuntimeError(f"{ask.id} runs to its ceiling")


def truth_of(plan: Plan, parameters: Parameters, natural: Natural | None = None) -> tuple[float, int]:
    """Return the highest level that keeps the objectives, and the requests of the exhaustive sweep up to it.

    Args:
        plan: the mix and its objectives.
        parameters: the replica without noise.
        natural: tokens after which the model ends an answer; None lets all run to their ceiling.
    """
    at = partial(Level, plan, parameters, natural)
    low = high = parameters.kv_tokens / 4
    while at(high).shares(300).held:
        low, high = high, high * 1.3
    while high > 1.05 * low:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if at(middle).shares(300).held else (low, middle)
    level = BEGIN_RATIO * low
    while not at(level).shares(ANSWERS).held:
        level *= BEGIN_RATIO
    best, broken, requests = 0.0, 0, 0
    while broken < BROKEN_IN_A_ROW:
        shares = at(level).shares(ANSWERS)
        requests += shares.requests
        broken = 0 if shares.held else broken + 1
        best = max(best, level) if shares.held else best
        print(f"  {level:12.0f} late {shares.late:.3f} slow {shares.slow:.3f}", flush=True)
        level *= STEP
    return best, requests


def read_truths() -> dict[Case, float]:
    """Return the truths that are written down."""
    with TRUTH.open(encoding="utf-8", newline="") as rows:
        return {
            Case(row["replica"], row["engine"], row["traffic"]): float(row["ceiling_tokens"])
            for row in csv.DictReader(rows)
        }


def main(names: list[str]) -> None:
    """Write the truth of each case whose replica is named, or of all; others stay as they are."""
    found = read_truths() if TRUTH.exists() else {}
    for case in cases():
        if names and case.replica not in names:
            continue
        print(case, flush=True)
        found[case], _ = truth_of(case.plan(), case.parameters())
        with TRUTH.open("w", encoding="utf-8", newline="") as rows:
            writer = csv.writer(rows, lineterminator="\n")
            writer.writerow(("replica", "engine", "traffic", "ceiling_tokens"))
            writer.writerows((one.replica, one.engine, one.traffic, round(level)) for one, level in found.items())


if __name__ == "__main__":
    main(sys.argv[1:])
