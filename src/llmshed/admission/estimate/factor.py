"""The factor between the estimate and the waits that come: learnt so that 90 % of waits are within it.

Each pair of raw estimate and real wait puts its ratio into a histogram of logarithmic buckets whose weights fade with
time, and the factor is its 0.9 quantile. They fade with time and not with the number of pairs, which makes it steady:
all pairs of one burst share one error, and the next burst has another. After a sudden change of the ratios the factor
rises to new ones as soon as they are a tenth of what is remembered (11 s at a steady rate), and falls to them when the
old ones are no more than that (230 s).

Short waits are those for one answer to end, long ones those for many, which is less a matter of chance. So there is a
histogram for each band of raw estimates, four times as long as the one before, beside one of all; where a band showed
little all of them stand in. Between the middles of two bands the logarithm of the factor goes straight from one to the
other, so a longer raw estimate does not suddenly have a much shorter wait.

A quantile of what was lags behind what comes. So which quantile is read follows what came of the waits that were told:
each that was not within its estimate raises it by nine times what each of the others lowers it by, as adaptive
conformal inference does, and never below 0.9.

Some pairs are always remembered, so that a first wait does not rule, and a factor that nothing has confirmed for long
goes back to 1. Their own 0.9 quantile is 1, and most of them are below it: 15 pairs and not 45 bring a factor down.
"""

from math import exp, log, log2

COVERED_RATIO = 0.9
"""Part of the waits that the estimate shall cover."""
LEAST_LEVEL = COVERED_RATIO
MOST_LEVEL = 0.98
"""Bounds of the quantile that is read for it: where more than 90 % were kept, the next burst may be another."""
LEVEL_STEP = 0.005
"""How far a wait moves it: 18 in a row that were not kept from 0.9 to its highest, and 160 that were back."""
LEAST_FACTOR = 0.5
MOST_FACTOR = 4.0
"""Bounds: beyond them the terms of the estimate are wrong, and a factor would only hide that."""
TOLD_SECONDS = 0.05
"""Pairs in which both are shorter say nothing: they are rounding beside an objective of seconds."""
MEMORY_SECONDS = 100.0
"""Time in which a pair's weight falls to 1/e: within 5 minutes 95 % of what is remembered is new."""
PRIOR_PAIRS = 5.0
PRIOR_PAIRS_OF_ONE = 2.0
"""Weight of the pairs that are always remembered, and of those among them with the ratio 1; the others are below."""
POOLED_PAIRS = 5.0
"""Pairs of its own that count in a band as much as what all bands showed."""
READ_AFTER_SECONDS = 0.5
"""How long the quantiles may stand before they are read again: a walk over the buckets is worth many decisions."""
UNSAMPLED_SECONDS = 60.0
"""Time without a pair after which the factor begins to be forgotten."""
FORGETTING_SECONDS = 300.0
"""Time constant of its way back to 1 from then on."""
BANDS = 5
FIRST_BAND_SECONDS = 0.125
"""Middle of the first band: the last one's is 32 s."""

_STEPS_PER_DOUBLING = 14
_STEPS = 3 * _STEPS_PER_DOUBLING  # from a half to 4, a twentieth each
_STEP = log(2.0) / _STEPS_PER_DOUBLING
_BUCKETS = _STEPS + 2  # at or below the least factor, the steps, and above the most
_HEAVIEST_PAIR = 1e12


class LearntFactor:
    """The factor of one lane and class in one pool."""

    __slots__ = ("_bands", "_level", "_logs", "_pair_weight", "_pooled", "_pooled_log", "_read_at", "_seen_at")

    def __init__(self) -> None:
        """Start at 1, the estimate as its terms make it."""
        self._pooled = [0.0] * _BUCKETS
        self._bands = [[0.0] * _BUCKETS for _ in range(BANDS)]
        self._level = COVERED_RATIO
        self._pair_weight = 1.0  # instead of all weights fading, that of the next pair grows
        self._seen_at: float | None = None
        self._read_at: float | None = None
        self._pooled_log = 0.0
        self._logs = [0.0] * BANDS

    def value(self, now: float) -> float:
        """Return the factor over all waits, in 0.5 .. 4; it has gone back towards 1 if nothing was learnt for long."""
        self._read(now)
        return exp(self._pooled_log * self._kept(now))

    def at(self, raw_seconds: float, now: float) -> float:
        """Return the factor of an estimate, in 0.5 .. 4, likewise."""
        if self._seen_at is None:
            return 1.0
        self._read(now)
        place = _place(raw_seconds)
        below = int(place)
        logs = self._logs
        between = logs[below] if below == BANDS - 1 else logs[below] + (place - below) * (logs[below + 1] - logs[below])
        return exp(between * self._kept(now))

    def learn(self, raw_seconds: float, actual_seconds: float, now: float) -> None:
        """Take in a wait that is over: the estimate made for it with a factor of 1, and how long it was."""
        if raw_seconds <= TOLD_SECONDS and actual_seconds <= TOLD_SECONDS:
            return
        if self._seen_at is not None and now > self._seen_at:
            self._pair_weight *= exp(min((now - self._seen_at) / MEMORY_SECONDS, 50.0))
        self._seen_at = now
        if self._pair_weight > _HEAVIEST_PAIR:
            for weights in (self._pooled, *self._bands):
                weights[:] = [weight / self._pair_weight for weight in weights]
            self._pair_weight = 1.0
        bucket = _bucket(raw_seconds, actual_seconds)
        self._pooled[bucket] += self._pair_weight
        self._bands[round(_place(raw_seconds))][bucket] += self._pair_weight

    def judge(self, told_seconds: float, actual_seconds: float) -> None:
        """Take in whether a wait that is over was within the estimate that was told."""
        if max(told_seconds, actual_seconds) <= TOLD_SECONDS:
            return
        step = LEVEL_STEP * (COVERED_RATIO - (actual_seconds <= told_seconds))
        self._level = min(max(self._level + step, LEAST_LEVEL), MOST_LEVEL)

    def _kept(self, now: float) -> float:
        unsampled = 0.0 if self._seen_at is None else now - self._seen_at - UNSAMPLED_SECONDS
        return 1.0 if unsampled <= 0.0 else exp(-unsampled / FORGETTING_SECONDS)

    def _read(self, now: float) -> None:
        """Read the quantiles anew if they are too old."""
        if self._seen_at is None or (self._read_at is not None and now - self._read_at <= READ_AFTER_SECONDS):
            return
        self._read_at = now
        pooled = [weight / self._pair_weight for weight in self._pooled]
        pooled[0] += PRIOR_PAIRS - PRIOR_PAIRS_OF_ONE
        pooled[_STEPS_PER_DOUBLING] += PRIOR_PAIRS_OF_ONE  # its upper edge is the ratio 1
        self._pooled_log = _quantile_log(pooled, self._level)
        scale = POOLED_PAIRS / sum(pooled)
        for band, weights in enumerate(self._bands):
            own = [weight / self._pair_weight + scale * common for weight, common in zip(weights, pooled, strict=True)]
            self._logs[band] = _quantile_log(own, self._level)


def _quantile_log(weights: list[float], level: float) -> float:
    """Return the logarithm of a quantile of the ratios in a histogram that is not empty."""
    left = (1.0 - level) * sum(weights)
    for bucket in range(_STEPS + 1, 0, -1):
        weight = weights[bucket]
        if left <= weight:
            inside = 1.0 - left / weight if bucket <= _STEPS else 0.0
            return log(LEAST_FACTOR) + _STEP * min(bucket - 1 + inside, _STEPS)
        left -= weight
    return log(LEAST_FACTOR)


def _place(raw_seconds: float) -> float:
    """Return where an estimate lies among the middles of the bands, 0 .. 4."""
    if raw_seconds <= FIRST_BAND_SECONDS:
        return 0.0
    return min(0.5 * log2(raw_seconds / FIRST_BAND_SECONDS), BANDS - 1.0)


def _bucket(raw_seconds: float, actual_seconds: float) -> int:
    if actual_seconds <= LEAST_FACTOR * raw_seconds:
        return 0
    if actual_seconds > MOST_FACTOR * raw_seconds:
        return _STEPS + 1
    return 1 + min(int(log(actual_seconds / (LEAST_FACTOR * raw_seconds)) / _STEP), _STEPS - 1)
