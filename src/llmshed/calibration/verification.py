"""Whether a ceiling that was measured before still is the replica's: two levels held, and what was seen of each.

The ceiling is the lower confidence bound of a knee, so the objectives have to be kept there, and have to break a little
above the upper bound. With [l, u] the interval of a share `late(L)` or `slow(L)`, and a = 0.05 as everywhere:

    L broke                            l > a for one of both shares
    L held                             u < a for both

    ceiling broke                      it does not hold
    ceiling held, above held too       too low: the knee is further up
    ceiling held, else                 it holds
    neither, for the ceiling           unsure: too little was seen
"""

from dataclasses import dataclass
from enum import StrEnum
from math import log
from typing import TYPE_CHECKING

from llmshed.calibration.drawing import Draws
from llmshed.calibration.gates import TokensGate
from llmshed.calibration.intervals import ALLOWED_LATE_RATIO, share_interval
from llmshed.calibration.machine import Calibration
from llmshed.calibration.observations import BIN_RATIO, Knee
from llmshed.calibration.phases import Phases
from llmshed.calibration.plan import Plan
from llmshed.calibration.results import Phase
from llmshed.calibration.search import Stage
from llmshed.calibration.sweep import Sweep, SweepTimes

if TYPE_CHECKING:
    from random import Random

ABOVE_CEILING_RATIO = 1.10
"""A ceiling is to be within 5 % of its knee, so that a tenth above it is well beyond."""
ABOVE_HIGH_RATIO = 1.05
"""The same above the upper bound of a wide interval."""
STAY_RATIO = 0.4
"""Part of the time that one level is held; the rest is for filling."""
STEPS = {Phase.IDLE: Phase.KV, Phase.KV: Phase.OVER, Phase.OVER: Phase.OVER}


class Conclusion(StrEnum):
    """What is to be said of a ceiling."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does_not_hold"
    TOO_LOW = "too_low"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Share:
    """How many of those judged were beyond their bound, and the interval of the true share."""

    judged: int
    beyond: int

    @property
    def interval(self) -> tuple[float, float]:
        """Return both bounds; 0 to 1 when none were judged."""
        return share_interval(self.beyond, self.judged)


@dataclass(frozen=True, slots=True)
class Level:
    """What was seen of one level.

    Args:
        tokens: reserved tokens in flight.
        late: first tokens.
        slow: answers, by their TPOT.
    """

    tokens: float
    late: Share
    slow: Share

    @property
    def kept(self) -> bool | None:
        """Return whether the objectives were kept; None when the intervals leave that open."""
        bounds = (self.late.interval, self.slow.interval)
        if any(low > ALLOWED_LATE_RATIO for low, _ in bounds):
            return False
        return True if all(high < ALLOWED_LATE_RATIO for _, high in bounds) else None


@dataclass(frozen=True, slots=True)
class Verified:
    """The two levels that the conclusion follows from."""

    ceiling: Level
    above: Level

    @property
    def conclusion(self) -> Conclusion:
        """Return what is to be said; see the equations of the module."""
        if self.ceiling.kept is None:
            return Conclusion.UNSURE
        if not self.ceiling.kept:
            return Conclusion.DOES_NOT_HOLD
        return Conclusion.TOO_LOW if self.above.kept else Conclusion.HOLDS


class TwoLevels:
    """The search of a verification: the ceiling, then the level above it if that was not seen to break.

    Both are held as a calibration holds levels near its knee: without probes, which are a load of their own.

    Args:
        ceiling_tokens: level that is to hold.
        above_tokens: level that is to break.
    """

    def __init__(self, ceiling_tokens: float, above_tokens: float) -> None:
        self.levels = (ceiling_tokens, above_tokens)
        self.level = ceiling_tokens
        self.stage = Stage.RETURN
        self.by_verdict = False

    def held(self, pressure: float) -> None:
        """Never told: neither level waits for a verdict."""

    def broke(self) -> None:
        """Never told, likewise."""

    def return_to(self, knee: Knee, *, enough: bool) -> None:  # noqa: ARG002 - the time says how much is seen
        """Go on above the ceiling, unless the knee is seen to be below that; then end."""
        ceiling, above = self.levels
        if self.level < above and knee.point * BIN_RATIO >= ceiling:
            self.level = above
        else:
            self.stage = Stage.DONE

    def knee(self) -> Knee | None:
        """Return None: there are no verdicts to tell it by."""
        return None


class Verification(Calibration):
    """A calibration that only sees whether a ceiling holds: the idle replica, the ceiling, and a level above it.

    Args:
        plan: the mix and the objectives; what is looked for is known.
        rng: source of every draw.
        ceiling_tokens: gross ceiling that was measured.
        high_tokens: upper confidence bound of the measurement; None where it is not known.
    """

    def __init__(self, plan: Plan, rng: "Random", ceiling_tokens: int, high_tokens: int | None) -> None:
        above = max(ABOVE_CEILING_RATIO * ceiling_tokens, ABOVE_HIGH_RATIO * (high_tokens or 0))
        self._levels = TwoLevels(float(ceiling_tokens), above)
        super().__init__(plan, rng, _TwoLevelPhases(plan, rng, self._levels), STEPS)

    def verified(self) -> Verified:
        """Return what was seen so far."""
        ceiling, above = (self._seen(tokens) for tokens in self._levels.levels)
        return Verified(ceiling, above)

    def _seen(self, tokens: float) -> Level:
        sweep = self.result().sweep(Phase.KV)
        late, slow = ((), ()) if sweep is None else (sweep.late, sweep.slow)
        return Level(tokens, _share(late, tokens), _share(slow, tokens))


class _TwoLevelPhases(Phases):
    """Makes the one sweep of a verification."""

    def __init__(self, plan: Plan, rng: "Random", levels: TwoLevels) -> None:
        super().__init__(plan, rng)
        self._levels = levels

    def make(self, phase: Phase, now: float, left_seconds: float) -> Sweep:  # noqa: ARG002 - there is one phase
        """Return the sweep of both levels, for all the time that is left."""
        times = SweepTimes(left_seconds, back=STAY_RATIO * left_seconds)
        draws = Draws(self._plan.mix, self._rng)
        return Sweep(self._plan, TokensGate(), draws, self._levels, times, now, aged=True)


def _share(seen: tuple[tuple[float, int, int], ...], tokens: float) -> Share:
    """Return what was seen within 1 % to 2 % of a level; `seen` are levels, each with the numbers judged and beyond."""
    near = [counts for level, *counts in seen if abs(log(level / tokens)) < 1.5 * log(BIN_RATIO)]
    return Share(sum(judged for judged, _ in near), sum(beyond for _, beyond in near))
