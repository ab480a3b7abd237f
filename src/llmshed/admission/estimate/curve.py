"""How much comes free until when, with and without the work that takes its place.

F(t) is what the running charges give back until t. While work waits, what comes free is taken again and comes free once
more: at a turnover of v a second, the mean of 1 / (time held) over what is charged, this adds

    J(t) = v x integral of F until t

which is exact in the long run, and at every t where the times held are exponential. Of it no more than `a`, the waiting
work that goes first, exists; so n is free at the least t with F(t) + min(a, J(t)) >= n, which is the later of the
instants at which F reaches n - a and F + J reaches n: two bisections.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise


class ReleaseCurve:
    """One such curve, of tokens or of sequences."""

    __slots__ = ("_at", "_free", "_renewed", "_turnover", "total")

    def __init__(self, instants: Sequence[float], amounts: Sequence[float], turnover_per_second: float) -> None:
        """Build it from instants, earliest first, and what comes free at each; v is above 0 unless there are none."""
        self._at = instants
        self._turnover = turnover_per_second
        self._free = list(accumulate(amounts))
        self._renewed: list[float] | None = None
        self.total = self._free[-1] if self._free else 0.0

    @property
    def end(self) -> float | None:
        """Return when the last of it comes free; None when there is nothing."""
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
        if ahead <= 0.0:
            return self._at[own]
        renewed_at = self._renewed_at(amount)
        return max(self._at[own], renewed_at) if amount > ahead else renewed_at

    def _renewed_at(self, amount: float) -> float:
        """Return when F + J reaches an amount: at a release, or between two by what is taken again."""
        if self._renewed is None:
            self._renewed = self._with_renewed()
        after = bisect_left(self._renewed, amount)
        if after == 0:
            return self._at[0]
        rate = self._turnover * self._free[after - 1]
        between = self._at[after - 1] + (amount - self._renewed[after - 1]) / rate
        return between if after == len(self._at) else min(between, self._at[after])

    def _with_renewed(self) -> list[float]:
        """Return F + J at the instants; it is built when it is first read, which is seldom for sequences."""
        gaps = (later - earlier for earlier, later in pairwise(self._at))
        pieces = (self._turnover * free * gap for free, gap in zip(self._free, gaps, strict=False))
        return [free + again for free, again in zip(self._free, accumulate(pieces, initial=0.0), strict=True)]
