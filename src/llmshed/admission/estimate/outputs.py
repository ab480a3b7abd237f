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
"""Until there are that many samples, those of an octave of ceilings or of a lane prove nothing."""
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
_HEAVIEST_SAMPLE = 1e12
"""Weight of a sample beyond which all are divided by it: far from what floats hold, so that light ones still count."""


class OutputModel:
    """The lengths of the answers of each lane, per sequence.

    A ceiling tells of the length, since many callers choose it for the answer that they expect: lengths are learnt for
    each octave of ceilings, and what the whole lane showed stands in for an octave that showed too little.
    """

    __slots__ = ("_of_ceilings", "_of_lanes")

    def __init__(self) -> None:
        """Know nothing: every ceiling stands."""
        self._of_lanes = {lane: _Lengths() for lane in Lane}
        self._of_ceilings: dict[tuple[Lane, int], _Lengths] = {}

    def learn(self, lane: Lane, output_tokens: int, ceiling_tokens: int) -> None:
        """Take in the length of an answer that ended, in tokens of one sequence, >= 0, and the ceiling it ran under."""
        self._of_lanes[lane].learn(output_tokens)
        self._of_ceilings.setdefault((lane, ceiling_tokens.bit_length()), _Lengths()).learn(output_tokens)

    def remaining_tokens(self, lane: Lane, produced_tokens: float, ceiling_tokens: int) -> float:
        """Return how many more tokens to expect of a sequence that has produced that many (>= 0).

        At least 1, and never above what its ceiling leaves unless that is below 1.
        """
        most = ceiling_tokens - produced_tokens
        if most <= 1.0:
            return 1.0
        lengths = self._known(lane, ceiling_tokens)
        if lengths is None:
            return most
        further = lengths.integral(ceiling_tokens) - lengths.integral(produced_tokens)
        return max(1.0, (further + UNSEEN_SAMPLES * most) / (lengths.longer(produced_tokens) + UNSEEN_SAMPLES))

    def lengths_tokens(
        self, lane: Lane, produced_tokens: float, ceiling_tokens: int, quantile: float
    ) -> tuple[float, float]:
        """Return two lengths that sequences which got beyond `produced_tokens` (>= 0) reach in the end.

        A part `quantile` (0..1) of them keeps to the first, a part 1 - `quantile` to the second. Each is at most the
        ceiling, and at least one token more than produced even if that is beyond it.
        """
        least, most = produced_tokens + 1.0, float(ceiling_tokens)
        if most <= least:
            return least, least
        lengths = self._known(lane, ceiling_tokens)
        if lengths is None:
            return most, most
        longer = lengths.longer(produced_tokens) + UNSEEN_SAMPLES
        first = lengths.exceeded_by((1.0 - quantile) * longer - UNSEEN_SAMPLES, most)
        second = lengths.exceeded_by(quantile * longer - UNSEEN_SAMPLES, most)
        return max(least, first), max(least, second)

    def _known(self, lane: Lane, ceiling_tokens: int) -> "_Lengths | None":
        lengths = self._of_ceilings.get((lane, ceiling_tokens.bit_length()))
        if lengths is None or lengths.samples < LEAST_SAMPLES:
            lengths = self._of_lanes[lane]
        return lengths if lengths.samples >= LEAST_SAMPLES else None


class _Lengths:
    """The histogram of one lane, and what is read of it: minus the weight above each edge, and its integral below."""

    __slots__ = ("_fresh", "_integrals", "_minus_above", "_sample_weight", "_weights", "samples")

    def __init__(self) -> None:
        self.samples = 0
        self._weights = [0.0] * len(_WIDTHS)
        self._sample_weight = 1.0
        self._fresh = 0
        self._minus_above: list[float] = []  # rising, as bisection wants it
        self._integrals: list[float] = []

    def learn(self, length: int) -> None:
        self.samples += 1
        self._fresh += 1
        # Instead of all weights falling, that of the next sample grows; what is read is divided by it.
        self._sample_weight *= 1.0 + 1.0 / MEMORY_SAMPLES
        self._weights[_bucket(length)] += self._sample_weight
        if self._sample_weight > _HEAVIEST_SAMPLE:
            self._weights = [weight / self._sample_weight for weight in self._weights]
            self._sample_weight = 1.0

    def longer(self, length: float) -> float:
        """Return the weight of the answers beyond a length, in samples."""
        minus_above = self._summed_up()
        at = _bucket(length)
        slope = (minus_above[at + 1] - minus_above[at]) / _WIDTHS[at]
        return -minus_above[at] - (length - _EDGES[at]) * slope

    def integral(self, length: float) -> float:
        """Return the integral of `longer` from 0 to a length."""
        minus_above = self._summed_up()
        at = _bucket(length)
        offset = length - _EDGES[at]
        slope = (minus_above[at + 1] - minus_above[at]) / _WIDTHS[at]
        return self._integrals[at] - offset * (minus_above[at] + 0.5 * offset * slope)

    def exceeded_by(self, weight: float, most: float) -> float:
        """Return the length beyond which that weight of answers lies, at most `most`, which stands for none too."""
        if weight <= 0.0:
            return most
        minus_above = self._minus_above or self._summed_up()
        at = bisect_right(minus_above, -weight) - 1  # the last edge above which as much or more lies
        if at < 0:  # more than all, by rounding
            return 0.0
        below = minus_above[at]
        length = _EDGES[at] + _WIDTHS[at] * (weight + below) / (below - minus_above[at + 1])
        return min(length, most)

    def _summed_up(self) -> list[float]:
        if self._minus_above and self._fresh < READ_AFTER_SAMPLES:
            return self._minus_above
        self._fresh = 0
        minus_above = list(
            accumulate((-weight / self._sample_weight for weight in reversed(self._weights)), initial=0.0)
        )
        minus_above.reverse()
        pieces = (-0.5 * width * (a + b) for width, (a, b) in zip(_WIDTHS, pairwise(minus_above), strict=True))
        self._minus_above = minus_above
        self._integrals = list(accumulate(pieces, initial=0.0))
        return minus_above


def _bucket(length: float) -> int:
    if length < 1.0:
        return 0
    return min(1 + int(BUCKETS_PER_OCTAVE * log2(length)), len(_WIDTHS) - 1)
