"""Quantiles of a stream in memory that does not grow with it.

The problem: a summary needs p50 and p99 of millions of lengths and waits, and keeping them all is what it must not do.
Values fall into buckets whose edges grow by a constant ratio g = (1 + a) / (1 - a): bucket i holds (g^(i-1), g^i], and
its middle 2 g^i / (g + 1) is within the relative error a of each value in it. Sketches of parts merge into exactly that
of the whole. Source: DDSketch (Masson, Rim, Lee, VLDB 2019), without its collapsing of buckets: values between 1e-9
and 1e12 need at most 2,421 of them at 1 %.
"""

import math
from bisect import bisect_right
from itertools import accumulate

SMALLEST = 1e-9
"""Values under this count as zero: a nanosecond, or nothing of a token."""
LARGEST = 1e12
"""The largest value that is taken."""


class QuantileSketch:
    """Counts of values from 0 to `LARGEST` in buckets of equal relative width.

    Args:
        relative_error: bound a on |told - true| / true of each quantile, more than 0 and less than 1.
    """

    __slots__ = ("_buckets", "_least", "_log_ratio", "_most", "_ratio", "_total", "_zeros", "count", "relative_error")

    def __init__(self, relative_error: float = 0.01) -> None:
        if not 0 < relative_error < 1:
            raise ValueError(f"a relative error lies between 0 and 1, not at {relative_error}")
        self.relative_error = relative_error
        self.count = 0
        self._ratio = (1 + relative_error) / (1 - relative_error)
        self._log_ratio = math.log(self._ratio)
        self._buckets: dict[int, int] = {}
        self._zeros = 0
        self._total = 0.0
        self._least = math.inf
        self._most = -math.inf

    def add(self, value: float, times: int = 1) -> None:
        """Count a value, `times` times.

        Raises:
            ValueError: the value is negative, above `LARGEST` or no number, or `times` is less than 1.
        """
        if not 0 <= value <= LARGEST or times < 1:
            raise ValueError(f"a sketch takes values from 0 to {LARGEST:g}, at least once; not {value}, {times} times")
        if value < SMALLEST:
            self._zeros += times
        else:
            bucket = math.ceil(math.log(value) / self._log_ratio)
            self._buckets[bucket] = self._buckets.get(bucket, 0) + times
        self.count += times
        self._total += value * times
        if value < self._least:  # noqa: PLR1730 - min() costs twice as much, and this runs for every token gap
            self._least = value
        if value > self._most:  # noqa: PLR1730 - as above
            self._most = value

    def merge(self, other: "QuantileSketch") -> None:
        """Take in what another sketch counted; `other` stays as it is.

        Raises:
            ValueError: the two differ in relative error, so that their buckets do not match.
        """
        if other.relative_error != self.relative_error:
            raise ValueError(
                f"sketches of relative error {self.relative_error} and {other.relative_error} do not merge"
            )
        buckets, zeros, total, least, most = other._contents()  # noqa: SLF001 - of its own class
        for bucket, count in buckets:
            self._buckets[bucket] = self._buckets.get(bucket, 0) + count
        self._zeros += zeros
        self.count += other.count
        self._total += total
        self._least = min(self._least, least)
        self._most = max(self._most, most)

    def quantile(self, share: float) -> float | None:
        """Return the value that `share` of the values do not exceed; None while nothing was added.

        It is the value of rank floor(share x (count - 1)), counted from 0, to within `relative_error`; the least and
        the greatest value are exact.

        Raises:
            ValueError: `share` is not between 0 and 1.
        """
        return self.quantiles((share,))[0]

    def quantiles(self, shares: tuple[float, ...]) -> tuple[float | None, ...]:
        """Return `quantile` of each share, in one pass over the buckets for all of them.

        Raises:
            ValueError: a share is not between 0 and 1.
        """
        if not all(0 <= share <= 1 for share in shares):
            raise ValueError(f"shares lie between 0 and 1, not {shares}")
        if not self.count:
            return (None,) * len(shares)
        buckets = sorted(self._buckets.items())
        below = list(accumulate((count for _, count in buckets), initial=self._zeros))
        return tuple(self._at(math.floor(share * (self.count - 1)), buckets, below) for share in shares)

    def at_rank(self, rank: int) -> float:
        """Return the value that `rank` values are below or equal to, to within `relative_error`; ranks start at 0.

        Raises:
            ValueError: there are not that many values.
        """
        if not 0 <= rank < self.count:
            raise ValueError(f"ranks from 0 to {self.count - 1} are accepted, not {rank}")
        buckets = sorted(self._buckets.items())
        return self._at(rank, buckets, list(accumulate((count for _, count in buckets), initial=self._zeros)))

    def share_up_to(self, value: float) -> float:
        """Return the share of the values that do not exceed `value`; 0 while nothing was added.

        Values within `relative_error` of `value` may be counted on either side of it.
        """
        if not self.count or value < 0:
            return 0.0
        value = min(value, LARGEST)
        last = math.floor(math.log(value) / self._log_ratio) if value >= SMALLEST else None
        inside = sum(count for bucket, count in self._buckets.items() if last is not None and bucket <= last)
        return (self._zeros + inside) / self.count

    def mean(self) -> float | None:
        """Return the mean of all values, exact but for rounding; None while nothing was added."""
        return self._total / self.count if self.count else None

    @property
    def least(self) -> float | None:
        """Return the least value; None while nothing was added."""
        return self._least if self.count else None

    @property
    def most(self) -> float | None:
        """Return the greatest value; None while nothing was added."""
        return self._most if self.count else None

    def _contents(self) -> tuple[list[tuple[int, int]], int, float, float, float]:
        return list(self._buckets.items()), self._zeros, self._total, self._least, self._most

    def _at(self, rank: int, buckets: list[tuple[int, int]], below: list[int]) -> float:
        if rank == self.count - 1:
            return self._most
        if rank == 0:
            return self._least
        place = bisect_right(below, rank)
        if place == 0:
            return 0.0
        middle = 2 * math.exp(buckets[place - 1][0] * self._log_ratio) / (self._ratio + 1)
        return min(max(middle, self._least), self._most)
