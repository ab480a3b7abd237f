"""Which level to hold next: climb until one breaks, bisect between the last that held and it, then return to the knee.

The step of the climb shrinks as anything nears its bound, so that the first level that breaks is not far beyond the
knee. Bisection ends where both ends are near each other; a wrong verdict there does no lasting harm, since the levels
held after it lie around the estimate from everything that was seen.
"""

from enum import Enum
from itertools import cycle
from math import sqrt
from typing import TYPE_CHECKING, Protocol

from llmshed.calibration.observations import Knee

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAST_GROWTH, MOST_GROWTH = 1.1, 1.5
"""A level that held grows by what its nearest bound leaves, within these: a step's time is a fixed part and a part that
grows with the level, so a level larger by the inverse of the share used up is not yet beyond the bound."""
NARROW_RATIO = 1.03
"""Ends of the bisection this near to each other end it."""
SURE_RATIO = 1.05
"""A confidence interval this narrow is narrow enough."""
AROUND = (0.985, 1.015, 1.0)
"""Levels that are returned to, by the estimate of the knee."""
BEYOND = 1.03
"""The same while no level that was returned to broke: the bisection ended below the knee."""
SAME_LEVEL_RATIO = 0.985
"""An estimate at this part of the level that was held, or more, and not bounded above, is that level itself."""
LEAST_RETURNS = 4
FALL_RATIO = 0.97
"""The same while nothing that was returned to held, once, then twice, four times, eight times: the bisection ended
above the knee, nobody knows how far."""
CONFIRMATION_STEP = 0.75
LEAST_CONFIRMED_RATIO = 0.1
"""Part of the level to be confirmed below which a sweep must have been wrong altogether."""
LEAST_LEVEL_RATIO = 1 / 32
"""Part of the first level below which nothing is tried."""


class Stage(Enum):
    """What the search is doing."""

    CLIMB = "climb"
    NARROW = "narrow"
    RETURN = "return"
    DONE = "done"


class LevelSearch(Protocol):
    """What a sweep asks for its next level."""

    level: float
    stage: Stage
    by_verdict: bool
    """Whether the verdicts are its whole result, and nothing is estimated."""

    def held(self, pressure: float) -> None:
        """Go on from a level that held."""

    def broke(self) -> None:
        """Go on from a level that broke."""

    def return_to(self, knee: Knee, *, enough: bool) -> None:
        """Go on from a level near the knee."""

    def knee(self) -> Knee | None:
        """Return what the verdicts alone tell."""


class Search:
    """The levels of one sweep, in its unit.

    Args:
        first: level to begin with, above 0.
        most: level that is never exceeded; None for none.
    """

    def __init__(self, first: float, most: float | None = None) -> None:
        self._most = float("inf") if most is None else most
        self.level = min(first, self._most)
        self.stage = Stage.CLIMB
        self.by_verdict = False
        self.low: float | None = None
        self.high: float | None = None
        self._least = LEAST_LEVEL_RATIO * self.level
        self._around: Iterator[float] = cycle(AROUND)
        self._returns = 0
        self._falls = 0

    def held(self, pressure: float) -> None:
        """Go on from a level that held.

        Args:
            pressure: share that was used up of the bound that is nearest to breaking.
        """
        self.low = max(self.low or 0.0, self.level)
        if self.high is not None:
            self.stage = Stage.NARROW
            self._bisect(self.low, self.high)
        elif self.level >= self._most:
            self.stage = Stage.DONE
        else:
            growth = min(max(1 / pressure, LEAST_GROWTH), MOST_GROWTH) if pressure > 0 else MOST_GROWTH
            self.level = min(self.level * growth, self._most)

    def broke(self) -> None:
        """Go on from a level that broke."""
        self.high = self.level if self.high is None else min(self.high, self.level)
        if self.low is None or self.low >= self.high:
            self.low = None
            self.level = self.level / 2
            if self.level < self._least:
                self.stage = Stage.DONE
            return
        self.stage = Stage.NARROW
        self._bisect(self.low, self.high)

    def return_to(self, knee: Knee, *, enough: bool) -> None:
        """Choose the next level around an estimate of the knee, or end where that is sure enough.

        Args:
            knee: the estimate; its lower bound is 0 while nothing that was returned to held.
            enough: whether enough was observed there.
        """
        sure = enough and knee.high is not None and knee.high <= SURE_RATIO * knee.low
        if self._returns >= LEAST_RETURNS and sure:
            self.stage = Stage.DONE
            return
        self._returns += 1
        self.level = min(self._around_knee(knee) * knee.point, self._most)
        if self.level < self._least:
            self.stage = Stage.DONE

    def _around_knee(self, knee: Knee) -> float:
        """Return the next level as a part of the estimate."""
        self._falls = 0 if knee.low else self._falls + 1
        if self._falls > 1:
            return float(FALL_RATIO ** (2 ** (self._falls - 1) - 1))
        if knee.high is None and knee.point >= SAME_LEVEL_RATIO * self.level:
            return BEYOND
        return next(self._around)

    def knee(self) -> Knee | None:
        """Return what the verdicts alone tell, where nothing was observed near the knee; None when no level held."""
        return None if self.low is None else Knee(self.low, self.low, self.high)

    def _bisect(self, low: float, high: float) -> None:
        if high <= NARROW_RATIO * low:
            self.stage = Stage.RETURN
        self.level = sqrt(low * high)


class Confirmation:
    """Levels downward from the one to be confirmed, until one holds.

    Args:
        first: level to be confirmed.
    """

    def __init__(self, first: float) -> None:
        self.level = first
        self.stage = Stage.NARROW
        self.by_verdict = True
        self._least = LEAST_CONFIRMED_RATIO * first
        self._confirmed: float | None = None
        self._broke: float | None = None

    def held(self, pressure: float) -> None:  # noqa: ARG002 - a confirmation goes nowhere from a level that holds
        """Confirm the level."""
        self._confirmed = self.level
        self.stage = Stage.DONE

    def broke(self) -> None:
        """Try a lower level."""
        self._broke = self.level
        self.level *= CONFIRMATION_STEP
        if self.level < self._least:
            self.stage = Stage.DONE

    def return_to(self, knee: Knee, *, enough: bool) -> None:
        """Never asked: it does not return."""

    def knee(self) -> Knee | None:
        """Return the level that was confirmed; None when none was."""
        return None if self._confirmed is None else Knee(self._confirmed, self._confirmed, self._broke)
