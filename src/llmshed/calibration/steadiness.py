"""Whether a row of measurements has settled: the diagnostic of J. Geweke (1992) on batch means.

The problem: what is measured just after a level was reached still shows how it was reached. With the row cut into
batches of equal length, which averages away that neighbours resemble each other, let F be the mean of the batches of
the first three eighths and L that of the last half. The row has settled when

    |F - L| <= max(z x sqrt(var(F) + var(L)), tolerance)        z = 2
"""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, variance

BATCHES = 8
EARLY, LATE = 3, 4
"""Batches at the beginning that are compared with batches at the end; the one between separates them."""
DEVIATIONS = 2.0


def has_settled(values: Sequence[float], tolerance: float) -> bool:
    """Say whether the early part of a row is like its end; a row shorter than two values a batch has not.

    Args:
        values: measurements in the order of time.
        tolerance: difference that does not matter, in their unit.
    """
    length = len(values) // BATCHES
    if length < 2:
        return False
    values = values[-length * BATCHES :]
    means = [fmean(values[start : start + length]) for start in range(0, len(values), length)]
    early, late = means[:EARLY], means[-LATE:]
    spread = sqrt(variance(early) / EARLY + variance(late) / LATE)
    return abs(fmean(early) - fmean(late)) <= max(DEVIATIONS * spread, tolerance)
