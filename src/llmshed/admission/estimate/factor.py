"""The factor between the estimate and the waits that come: learnt so that 90 % of waits are within it.

Each pair of raw estimate and real wait puts its ratio into a histogram of logarithmic buckets whose weights fade with
time, and the factor is its 0.9 quantile. They fade with time and not with the number of pairs, which makes it steady:
all pairs of one burst share one error, and the next burst has another. After a sudden change of the ratios the factor
rises to new ones as soon as they are a tenth of what is remembered (11 s at a steady rate), and falls to them when the
old ones are no more than that (230 s).

Some pairs with the ratio 1 are always remembered, so that a first wait does not rule, and a factor that nothing has
confirmed for long goes back to 1.
"""

from math import exp, log

COVERED_RATIO = 0.9
"""Part of the waits that the estimate shall cover."""
LEAST_FACTOR = 0.5
MOST_FACTOR = 4.0
"""Bounds: beyond them the terms of the estimate are wrong, and a factor would only hide that."""
TOLD_SECONDS = 0.05
"""Pairs in which both are shorter say nothing: they are rounding beside an objective of seconds."""
MEMORY_SECONDS = 100.0
"""Time in which a pair's weight falls to 1/e: within 5 minutes 95 % of what is remembered is new."""
PRIOR_PAIRS = 5.0
"""Weight of the pairs with the ratio 1."""
READ_AFTER_SECONDS = 0.5
"""How long the quantile may stand before it is read again: a walk over the buckets is worth many decisions."""
UNSAMPLED_SECONDS = 60.0
"""Time without a pair after which the factor begins to be forgotten."""
FORGETTING_SECONDS = 300.0
"""Time constant of its way back to 1 from then on."""

_STEPS_PER_DOUBLING = 14
_STEPS = 3 * _STEPS_PER_DOUBLING  # from a half to 4, a twentieth each
_STEP = log(2.0) / _STEPS_PER_DOUBLING


class LearntFactor:
    """The factor of one lane and class in one pool."""

    __slots__ = ("_quantile_log", "_read_at", "_seen_at", "_weights")

    def __init__(self) -> None:
        """Start at 1, the estimate as its terms make it."""
        self._weights = [0.0] * (_STEPS + 2)  # at or below the least factor, the steps, and above the most
        self._seen_at: float | None = None
        self._read_at: float | None = None
        self._quantile_log = 0.0

    def value(self, now: float) -> float:
        """Return the factor, in 0.5 .. 4; it has gone back towards 1 if nothing was learnt for long."""
        if self._seen_at is None:
            return 1.0
        if self._read_at is None or now - self._read_at > READ_AFTER_SECONDS:
            self._quantile_log = self._quantile()
            self._read_at = now
        unsampled = now - self._seen_at - UNSAMPLED_SECONDS
        return exp(
            self._quantile_log if unsampled <= 0.0 else self._quantile_log * exp(-unsampled / FORGETTING_SECONDS)
        )

    def learn(self, raw_seconds: float, actual_seconds: float, now: float) -> None:
        """Take in a wait that is over: the estimate made for it with a factor of 1, and how long it was."""
        if raw_seconds <= TOLD_SECONDS and actual_seconds <= TOLD_SECONDS:
            return
        if self._seen_at is not None and now > self._seen_at:
            kept = exp((self._seen_at - now) / MEMORY_SECONDS)
            self._weights = [weight * kept for weight in self._weights]
        self._seen_at = now
        self._weights[_bucket(raw_seconds, actual_seconds)] += 1.0

    def _quantile(self) -> float:
        """Return the logarithm of the 0.9 quantile of the remembered ratios."""
        left = (1.0 - COVERED_RATIO) * (sum(self._weights) + PRIOR_PAIRS)
        for bucket in range(_STEPS + 1, -1, -1):
            weight = self._weights[bucket]
            if bucket == _STEPS_PER_DOUBLING:  # its upper edge is the ratio 1
                left -= PRIOR_PAIRS
                if left <= 0.0:
                    return 0.0
            if left <= weight:
                inside = 1.0 - left / weight if 0 < bucket <= _STEPS else float(bucket == 0)
                return log(LEAST_FACTOR) + _STEP * min(bucket - 1 + inside, _STEPS)
            left -= weight
        return log(LEAST_FACTOR)


def _bucket(raw_seconds: float, actual_seconds: float) -> int:
    if actual_seconds <= LEAST_FACTOR * raw_seconds:
        return 0
    if actual_seconds > MOST_FACTOR * raw_seconds:
        return _STEPS + 1
    return 1 + min(int(log(actual_seconds / (LEAST_FACTOR * raw_seconds)) / _STEP), _STEPS - 1)
