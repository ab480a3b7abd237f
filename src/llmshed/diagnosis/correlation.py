"""Whether one series follows another: rank correlation at a lag, its bootstrap interval, and the size of the effect."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from llmshed.diagnosis.track import Track

MOST_LAG_STEPS = 5
LEAST_PAIRS = 20
"""Pairs of values below which a correlation is not told: a block bootstrap of fewer says nothing."""
RESAMPLES = 1000
BLOCK_STEPS = 5
"""Length of a block, over which neighbouring steps of a minute's rate depend on each other."""
COVERED = 0.95
"""Of the interval, with the choice among the lags allowed for: each has its share of what may lie outside."""


@dataclass(frozen=True, slots=True)
class Follows:
    """How one series follows another.

    Args:
        lag_steps: by how many steps it follows, 0 for none.
        correlation: Spearman's, -1 to 1.
        low: lower end of its 95 % interval.
        high: upper end.
        quiet: median of the follower while the other is in its lowest quarter.
        busy: median of it while the other is in its highest quarter.
    """

    lag_steps: int
    correlation: float
    low: float
    high: float
    quiet: float
    busy: float

    @property
    def is_sure(self) -> bool:
        """Say whether the interval leaves no doubt that it rises with the other."""
        return self.low > 0


def follows(leader: Track, follower: Track, draw: Callable[[int], int]) -> Follows | None:
    """Say how `follower` follows `leader`, at the lag at which it does most; None with too few pairs or no change.

    Args:
        leader: what may be the cause.
        follower: what may follow, on the same grid.
        draw: returns a whole number from 0 to below its argument, as `random.Random.randrange`.
    """
    found = [
        (_spearman(pairs), lag, pairs)
        for lag in range(MOST_LAG_STEPS + 1)
        if len(pairs := _pairs(leader.values, follower.values, lag)) >= LEAST_PAIRS
    ]
    known = [(correlation, -lag, pairs) for correlation, lag, pairs in found if correlation is not None]
    if not known:
        return None
    correlation, negative_lag, pairs = max(known, key=lambda one: one[:2])
    low, high = _interval(pairs, len(known), draw)
    quiet, busy = _effect(pairs)
    return Follows(-negative_lag, correlation, min(low, correlation), max(high, correlation), quiet, busy)


def _pairs(leading: Sequence[float], following: Sequence[float], lag: int) -> list[tuple[float, float]]:
    later = following[lag:]
    return [(x, y) for x, y in zip(leading, later, strict=False) if not (math.isnan(x) or math.isnan(y))]


def _spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return Pearson's correlation of the ranks; None where one of the two does not change."""
    first, second = _ranks([x for x, _ in pairs]), _ranks([y for _, y in pairs])
    middle = (len(pairs) - 1) / 2
    together = sum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    spread = math.sqrt(sum((a - middle) ** 2 for a in first) * sum((b - middle) ** 2 for b in second))
    return together / spread if spread else None


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the ranks from 0; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    first = 0
    while first < len(order):
        after = first
        while after < len(order) and values[order[after]] == values[order[first]]:
            after += 1
        for place in order[first:after]:
            ranks[place] = (first + after - 1) / 2
        first = after
    return ranks


def _interval(pairs: Sequence[tuple[float, float]], lags: int, draw: Callable[[int], int]) -> tuple[float, float]:
    """Return the percentile interval of a moving-block bootstrap (Kuensch 1989), for the best of so many lags."""
    length = min(BLOCK_STEPS, len(pairs))
    blocks = math.ceil(len(pairs) / length)
    starts = len(pairs) - length + 1
    told: list[float] = []
    for _ in range(RESAMPLES):
        sample = [pair for at in (draw(starts) for _ in range(blocks)) for pair in pairs[at : at + length]]
        correlation = _spearman(sample[: len(pairs)])
        told.append(0.0 if correlation is None else correlation)
    told.sort()
    cut = round((1 - COVERED) / lags / 2 * (RESAMPLES - 1))
    return told[cut], told[-1 - cut]


def _effect(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    ordered = sorted(pairs)
    quarter = max(1, len(ordered) // 4)
    return median(y for _, y in ordered[:quarter]), median(y for _, y in ordered[-quarter:])
