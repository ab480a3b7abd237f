"""How many tokens the answers of a lane really get, learnt from those that ended.

Lengths are kept as a histogram in buckets of a quarter octave whose weight decays with each further sample, so the last
`MEMORY_SAMPLES` or so tell. S(x), the part of the answers longer than x, is linear inside a bucket; with its integral
I(x), an answer that has produced x of at most c tokens goes on for (I(c) - I(x)) / S(x) tokens on average.

Where nothing was seen the ceiling stands, since it is what the reservation was made for: half an answer that runs to
its ceiling is counted among those longer than x, which matters only where few are.
"""

from bisect import bisect_right
from itertools import accumulate, pairwise
from math import log2

from llmshed.admission.request import Lane

LEAST_SAMPLES = 20
"""Until a lane has that many samples its ceilings stand."""
MEMORY_SAMPLES = 150
"""Samples after which one's weight has fallen to 1/e: 5 minutes at one a second replace 87 % of what was known."""
UNSEEN_SAMPLES = 0.5
"""Weight of the answer that runs to its ceiling."""
READ_AFTER_SAMPLES = 8
"""How many samples may be missing from what is read: summing the buckets up costs as much as some twenty reads."""
BUCKETS_PER_OCTAVE = 4
OCTAVES = 21
"""Two million tokens: beyond the context of any model that is served."""

_EDGES: list[float] = [0.0, *(2.0 ** (step / BUCKETS_PER_OCTAVE) for step in range(OCTAVES * BUCKETS_PER_OCTAVE + 1))]
_WIDTHS = [upper - lower for lower, upper in pairwise(_EDGES)]


class OutputModel:
    """The lengths of the answers of each lane, per sequence."""

    def __init__(self) -> None:
        """Know nothing: every ceiling stands."""
        self._lengths = {lane: _Lengths() for lane in Lane}

    def learn(self, lane: Lane, output_tokens: int) -> None:
        """Take in the length of an answer that ended, in tokens of one sequence, >= 0."""
        self._lengths[lane].learn(output_tokens)

    def remaining_tokens(self, lane: Lane, produced_tokens: float, ceiling_tokens: int) -> float:
        """Return how many more tokens to expect of a sequence that has produced that many.

        Never below 1, and never above what its ceiling leaves unless that is below 1.
        """
        most = ceiling_tokens - produced_tokens
        if most <= 1.0:
            return 1.0
        lengths = self._lengths[lane]
        if lengths.samples < LEAST_SAMPLES:
            return most
        longer = lengths.longer(produced_tokens)
        further = lengths.integral(ceiling_tokens) - lengths.integral(produced_tokens)
        return max(1.0, (further + UNSEEN_SAMPLES * most) / (longer + UNSEEN_SAMPLES))

    def length_tokens(self, lane: Lane, produced_tokens: float, ceiling_tokens: int, quantile: float) -> float:
        """Return the length that a part `quantile` (0..1) of the sequences that got beyond `produced_tokens` keeps to.

        At least one token more than produced, and otherwise at most the ceiling.
        """
        least = produced_tokens + 1.0
        if ceiling_tokens <= least:
            return least
        lengths = self._lengths[lane]
        if lengths.samples < LEAST_SAMPLES:
            return float(ceiling_tokens)
        target = (1.0 - quantile) * (lengths.longer(produced_tokens) + UNSEEN_SAMPLES) - UNSEEN_SAMPLES
        return min(max(least, lengths.exceeded_by(target)), float(ceiling_tokens))


class _Lengths:
    """The histogram of one lane, and what is read of it: the weight above each edge and its integral below."""

    __slots__ = ("_above", "_fresh", "_integrals", "_sample_weight", "_weights", "samples")

    def __init__(self) -> None:
        self.samples = 0
        self._weights = [0.0] * len(_WIDTHS)
        self._sample_weight = 1.0
        self._fresh = 0
        self._above: list[float] = []
        self._integrals: list[float] = []

    def learn(self, length: int) -> None:
        self.samples += 1
        self._fresh += 1
        # Instead of all weights falling, that of the next sample grows; what is read is divided by it.
        self._sample_weight *= 1.0 + 1.0 / MEMORY_SAMPLES
        self._weights[_bucket(length)] += self._sample_weight
        if self._sample_weight > 1e12:
            self._weights = [weight / self._sample_weight for weight in self._weights]
            self._sample_weight = 1.0

    def longer(self, length: float) -> float:
        """Return the weight of the answers beyond a length, in samples."""
        self._sum_up()
        at = _bucket(length)
        inside = (length - _EDGES[at]) / _WIDTHS[at]
        return self._above[at] + inside * (self._above[at + 1] - self._above[at])

    def integral(self, length: float) -> float:
        """Return the integral of `longer` from 0 to a length."""
        self._sum_up()
        at = _bucket(length)
        offset = length - _EDGES[at]
        slope = (self._above[at + 1] - self._above[at]) / _WIDTHS[at]
        return self._integrals[at] + offset * (self._above[at] + 0.5 * offset * slope)

    def exceeded_by(self, weight: float) -> float:
        """Return the length beyond which that weight of answers lies; infinite for none."""
        self._sum_up()
        if weight <= 0.0:
            return float("inf")
        at = bisect_right(self._above, -weight, key=lambda above: -above) - 1
        if at < 0:
            return 0.0
        return _EDGES[at] + _WIDTHS[at] * (self._above[at] - weight) / (self._above[at] - self._above[at + 1])

    def _sum_up(self) -> None:
        if self._above and self._fresh < READ_AFTER_SAMPLES:
            return
        self._fresh = 0
        scale = 1.0 / self._sample_weight
        above = list(accumulate((weight * scale for weight in reversed(self._weights)), initial=0.0))
        above.reverse()
        pieces = (0.5 * width * (a + b) for width, (a, b) in zip(_WIDTHS, pairwise(above), strict=True))
        self._above = above
        self._integrals = list(accumulate(pieces, initial=0.0))


def _bucket(length: float) -> int:
    if length < 1.0:
        return 0
    return min(1 + int(BUCKETS_PER_OCTAVE * log2(length)), len(_WIDTHS) - 1)
