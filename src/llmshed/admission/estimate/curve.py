"""How much comes free until when, with and without the work that takes its place.

F(t) is what the running charges give back until t. While work waits, what comes free is taken again and comes free once
more: at a turnover of v a second, the mean of 1 / (time held) over what is charged, this adds

    J(t) = v x integral of F until t

which is exact in the long run, and at every t where the times held are exponential. Of it no more than `a`, the waiting
work that goes first, exists; so n is free at the least t with F(t) + min(a, J(t)) >= n, which is the later of the
instants at which F reaches n - a and F + J reaches n: two bisections.
"""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate


class ReleaseCurve:
    """One such curve, of tokens or of sequences."""

    __slots__ = ("_at", "_free", "_renewed", "_turnover")

    def __init__(self, releases: Iterable[tuple[float, float]], turnover_per_second: float) -> None:
        """Build it from pairs of instant and amount, earliest first; the turnover is v, above 0 unless empty."""
        pairs = list(releases)
        self._at = [at for at, _ in pairs]
        self._free = list(accumulate(amount for _, amount in pairs))
        self._turnover = turnover_per_second
        self._renewed: list[float] = []
        taken_again, before, free = 0.0, self._at[0] if pairs else 0.0, 0.0
        for at, now_free in zip(self._at, self._free, strict=True):
            taken_again += turnover_per_second * free * (at - before)
            self._renewed.append(now_free + taken_again)
            before, free = at, now_free

    @property
    def total(self) -> float:
        """Return what comes free in all."""
        return self._free[-1] if self._free else 0.0

    @property
    def end(self) -> float | None:
        """Return when the last of it does; None when there is nothing."""
        return self._at[-1] if self._at else None

    def reached_at(self, amount: float, ahead: float) -> float | None:
        """Return when that amount is free, of which `ahead` goes to waiting work; None when that never comes.

        An amount <= 0 is free from the start: minus infinity.
        """
        if amount <= 0.0:
            return float("-inf")
        own = bisect_left(self._free, amount - ahead)
        if own == len(self._free):
            return None
        return max(self._at[own], self._renewed_at(amount)) if amount > ahead else self._renewed_at(amount)

    def _renewed_at(self, amount: float) -> float:
        """Return when F + J reaches an amount: at a release, or between two by what is taken again."""
        after = bisect_left(self._renewed, amount)
        if after == 0:
            return self._at[0]
        rate = self._turnover * self._free[after - 1]
        between = self._at[after - 1] + (amount - self._renewed[after - 1]) / rate
        return between if after == len(self._at) else min(between, self._at[after])
