"""What one stay at one level has shown so far, and whether that is enough for a verdict."""

from dataclasses import dataclass, field
from enum import Enum
from statistics import fmean

from llmshed.calibration.intervals import ALLOWED_LATE_RATIO, share_interval
from llmshed.calibration.steadiness import has_settled

LEAST_FIRST_TOKENS = 16
LEAST_PACES = 4
CLEARLY_LATE = 5
"""So many late of few, and the climb ends without waiting for a steady state: it has gone beyond the knee."""
CLEARLY_LATE_RATIO = 0.15
SETTLED_TOLERANCE_RATIO = 0.1
"""Drift of the TTFT, as a share of its bound, that does not matter."""


class Verdict(Enum):
    """Whether the objectives are kept at a level."""

    HELD = "held"
    BROKE = "broke"
    OPEN = "open"


@dataclass(slots=True)
class Dwell:
    """One stay at a level.

    Args:
        since: when the level was reached.
        paces: TPOT of what tells the pace, as a share of its bound.
        first_tokens: TTFT of judged asks sent during the stay as a share of its bound, in the order of arrival.
        answers: TPOT of judged answers of the mix that were sent during the stay, as a share of its bound.
        tpot_seconds: that of what tells the pace, in seconds.
        refused: refusals and failures.
    """

    since: float
    paces: list[float] = field(default_factory=list)
    first_tokens: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    tpot_seconds: list[float] = field(default_factory=list)
    refused: int = 0

    @property
    def pressure(self) -> float:
        """Return what is used up of the nearest bound: by TTFT at the 90th percentile, or by the pace in the mean."""
        return max(_p90(self.first_tokens), self.pace)

    @property
    def pace(self) -> float:
        """Return the mean TPOT as a share of its bound; 0 while nothing tells it."""
        return fmean(self.paces) if self.paces else 0.0

    def climbing(self, overdue: int, now: float, most_seconds: float) -> Verdict:
        """Judge a level of the climb: roughly, since most are far from the knee.

        Args:
            overdue: asks of this stay that wait beyond their bound for a first token.
            now: clock reading.
            most_seconds: stay after which the verdict follows from what is there.
        """
        seen = len(self.first_tokens) + overdue + self.refused
        late = sum(ratio > 1 for ratio in self.first_tokens) + overdue + self.refused
        slow = sum(ratio > 1 for ratio in self.answers)
        if _clearly(late, seen) or _clearly(slow, len(self.answers)):
            return Verdict.BROKE
        enough = len(self.first_tokens) >= LEAST_FIRST_TOKENS and len(self.paces) >= LEAST_PACES
        if not enough and now - self.since < most_seconds:
            return Verdict.OPEN
        return Verdict.BROKE if self.pace > 1 or late > CLEARLY_LATE_RATIO * seen else Verdict.HELD

    def narrowing(self, late: tuple[int, int], slow: tuple[int, int], now: float, most_seconds: float) -> Verdict:
        """Judge a level near the knee by all that was seen there, in this stay or an earlier one.

        Args:
            late: first tokens observed at the level, overdue ones among them, and how many were late.
            slow: answers observed at the level, and how many were slow.
            now: clock reading.
            most_seconds: stay after which the likelier verdict is given.
        """
        over = now - self.since >= most_seconds
        if not (over or has_settled(self.first_tokens, SETTLED_TOLERANCE_RATIO)):
            return Verdict.OPEN
        if len(self.paces) >= LEAST_PACES and self.pace > 1:
            return Verdict.BROKE
        bounds = [share_interval(bad, seen) for seen, bad in (late, slow)]
        if any(low > ALLOWED_LATE_RATIO for low, _ in bounds):
            return Verdict.BROKE
        if all(high < ALLOWED_LATE_RATIO for _, high in bounds):
            return Verdict.HELD
        if not over:
            return Verdict.OPEN
        broke = any(bad > ALLOWED_LATE_RATIO * seen for seen, bad in (late, slow))
        return Verdict.BROKE if broke else Verdict.HELD


def _clearly(late: int, seen: int) -> bool:
    return late >= CLEARLY_LATE and late > CLEARLY_LATE_RATIO * seen


def _p90(values: list[float]) -> float:
    return sorted(values)[int(0.9 * len(values))] if values else 0.0
