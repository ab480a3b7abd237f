"""What a degraded path is worth, by the same cases sent through it and through the primary path.

With p_i and d_i the results of case i on the primary and the degraded path, 0 to 1, and w_i its weight:

    mean      P = sum(w p) / sum(w),  D likewise
    gap       g = 1 - D / P, the share of the primary's result that is lost; below 0 where the path does better
    of a mean Wilson's interval with (sum w)^2 / sum(w^2) as the number of cases: for results between 0 and 1 that are
              not all 0 or 1 it is too wide rather than too narrow, since theirs vary less
    of a gap  g -+ z se, se^2 = n / (n - 1) x sum(w^2 (d - D/P p)^2) / sum(w p)^2, linearised; a case is its own pair,
              so what makes it hard on both paths does not widen the interval

All intervals are of 95 %. A case without an answer on one of the paths is left out of both: that the gateway was busy
says nothing of an answer. One that the path refuses for its size, or that its engine fails, is an answer worth 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

Z_95 = 1.959964
"""Quantile of the normal distribution that leaves 2.5 % above it."""
LEAST_ANSWERED_RATIO = 0.95
"""Share of the cases that both paths have to answer for a verdict: whatever else is missing may be the hard ones."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate between its bounds of 95 %."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Pair:
    """One case on both paths.

    Args:
        weight: above 0.
        primary: result on the primary path, 0 to 1; None for no answer.
        degraded: the same on the degraded path.
    """

    weight: float
    primary: float | None
    degraded: float | None


def mean_result(results: Sequence[tuple[float, float]]) -> Interval | None:
    """Return the mean of results, each with its weight before it; None of none."""
    weights = sum(weight for weight, _ in results)
    if not results:
        return None
    mean = min(1.0, max(0.0, sum(weight * result for weight, result in results) / weights))
    cases = weights**2 / sum(weight**2 for weight, _ in results)
    slack = Z_95**2 / cases
    middle = (mean + slack / 2) / (1 + slack)
    reach = Z_95 / (1 + slack) * sqrt(mean * (1 - mean) / cases + slack / (4 * cases))
    return Interval(mean, max(0.0, min(mean, middle - reach)), min(1.0, max(mean, middle + reach)))


def gap_of(pairs: Sequence[Pair]) -> Interval | None:
    """Return what the degraded path loses of the primary's result; None where too little was answered to tell.

    None also where the primary path answers nothing right: of nothing no share is lost.
    """
    both = [
        (pair.weight, pair.primary, pair.degraded)
        for pair in pairs
        if pair.primary is not None and pair.degraded is not None
    ]
    primary = sum(weight * p for weight, p, _ in both)
    if not both or len(both) < LEAST_ANSWERED_RATIO * len(pairs) or primary <= 0:
        return None
    kept = sum(weight * d for weight, _, d in both) / primary
    spread = sum((weight * (d - kept * p)) ** 2 for weight, p, d in both)
    correction = len(both) / max(1, len(both) - 1)
    reach = Z_95 * sqrt(correction * spread) / primary
    return Interval(1 - kept, 1 - kept - reach, 1 - kept + reach)


def is_beyond(gap: float, largest_gap: float) -> bool:
    """Say whether a gap is larger than agreed."""
    return gap > largest_gap + _ROUNDING
