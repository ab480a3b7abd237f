"""When a signal left its baseline; the package's text has the rule."""

import math
from dataclasses import dataclass
from enum import Enum
from statistics import median

from llmshed.diagnosis.track import Track

STEPS_IN_A_ROW = 3
DEVIATIONS = 4.0
RELATIVE = 0.05
NORMAL_MAD = 1.4826
"""Standard deviation of a normal distribution by its median absolute deviation."""
LEAST_KNOWN = 5
"""Values of a baseline below which it is none."""


class Bad(Enum):
    """In which direction a signal is a trouble."""

    UP = 1
    DOWN = -1
    NEITHER = 0


@dataclass(frozen=True, slots=True)
class Departure:
    """How a signal left its baseline.

    Args:
        at: when, in seconds since the epoch.
        value: median of it from then to the end.
        baseline: median of the baseline.
    """

    at: float
    value: float
    baseline: float


def departure_of(baseline: Track, window: Track, bad: Bad, least_change: float) -> Departure | None:
    """Return the first departure of a window from its baseline; None where there is none, or no baseline to tell by."""
    before = baseline.known
    if len(before) < LEAST_KNOWN:
        return None
    middle = median(before)
    deviation = NORMAL_MAD * median(abs(value - middle) for value in before)
    bound = max(DEVIATIONS * deviation, RELATIVE * abs(middle), least_change)
    run = first = 0
    for place, value in enumerate(window.values):
        if math.isnan(value):
            continue  # a gap neither ends a run nor makes one
        run = run + 1 if _is_beyond(value - middle, bound, bad) else 0
        if run == 1:
            first = place
        if run == STEPS_IN_A_ROW:
            since = window.values[first:]
            return Departure(window.at(first), median(one for one in since if not math.isnan(one)), middle)
    return None


def _is_beyond(change: float, bound: float, bad: Bad) -> bool:
    match bad:
        case Bad.UP:
            return change > bound
        case Bad.DOWN:
            return change < -bound
        case Bad.NEITHER:
            return abs(change) > bound
