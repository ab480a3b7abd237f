"""A distribution known by a few of its quantiles, and values drawn from it."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class QuantileFunction:
    """The inverse of a cumulative distribution, straight between the points that are known.

    Below the first point and above the last it stays at their values: what lies beyond was not told. A draw is
    `at(rng.random())`, by inversion.

    Args:
        shares: never decreasing, each between 0 and 1. A share that stands twice is a jump: no values lie between.
        values: value at each share, never decreasing.

    Raises:
        ValueError: there is no point, the lengths differ, or an order is broken.
    """

    shares: Sequence[float]
    values: Sequence[float]

    def __post_init__(self) -> None:
        if not self.shares or len(self.shares) != len(self.values):
            raise ValueError(f"one value for each share is needed, not {len(self.values)} for {len(self.shares)}")
        if not all(0 <= share <= 1 for share in self.shares) or not _rises(self.shares):
            raise ValueError(f"shares rise from 0 to 1, not {list(self.shares)}")
        if not _rises(self.values):
            raise ValueError(f"quantiles never decrease, not {list(self.values)}")

    def at(self, share: float) -> float:
        """Return the value that a share (0 to 1) of the distribution does not exceed."""
        place = bisect_right(self.shares, share)
        if place == 0:
            return self.values[0]
        if place == len(self.shares):
            return self.values[-1]
        low, high = self.shares[place - 1], self.shares[place]
        below, above = self.values[place - 1], self.values[place]
        return below + (above - below) * (share - low) / (high - low)


def _rises(row: Sequence[float]) -> bool:
    return all(first <= second for first, second in pairwise(row))
