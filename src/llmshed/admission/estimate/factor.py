"""The factor between the estimate and the waits that come: learnt so that 90 % of waits are within it.

Each pair of raw estimate and real wait moves the factor's logarithm up by 0.9 h when the wait was longer than
raw x factor and down by 0.1 h when it was not. It stands still where one wait in ten is longer, whatever their
distribution. The step h is smaller the more pairs come a second: those of one instant share one error, and a steady
factor is worth more than a fast one. Down is the slow direction: to a third in 11 / h pairs, under two minutes from one
pair in two seconds upwards.
"""

from math import exp, log

COVERED_RATIO = 0.9
"""Part of the waits that the estimate shall cover."""
LEAST_FACTOR = 0.5
MOST_FACTOR = 4.0
"""Bounds: beyond them the terms of the estimate are wrong, and a factor would only hide that."""
TOLD_SECONDS = 0.05
"""Pairs in which both are shorter say nothing: they are rounding beside an objective of seconds."""
STEP_PER_SECOND = 0.1
"""How much of the step falls to a second of time between two pairs."""
LEAST_STEP = 0.01
MOST_STEP = 0.2
"""Bounds of h: a burst of hundreds still teaches something, and a single pair moves the factor by a fifth at most."""
GAP_LEARNING_RATIO = 0.1
UNSAMPLED_SECONDS = 60.0
"""Time without a pair after which the factor begins to be forgotten."""
FORGETTING_SECONDS = 300.0
"""Time constant of its way back to 1 from then on."""


class LearntFactor:
    """The factor of one lane and class in one pool."""

    __slots__ = ("_gap_seconds", "_log", "_seen_at", "within", "without")

    def __init__(self) -> None:
        """Start at 1, the estimate as its terms make it."""
        self._log = 0.0
        self._seen_at: float | None = None
        self._gap_seconds = 1.0
        self.within = 0
        self.without = 0

    def value(self, now: float) -> float:
        """Return the factor, in 0.5 .. 4; it has gone back towards 1 if nothing was learnt for long."""
        return exp(self._log * self._kept(now))

    def learn(self, raw_seconds: float, actual_seconds: float, now: float) -> None:
        """Take in a wait that is over: the estimate made for it with a factor of 1, and how long it was."""
        if raw_seconds <= TOLD_SECONDS and actual_seconds <= TOLD_SECONDS:
            return
        self._log *= self._kept(now)
        if self._seen_at is not None:
            self._gap_seconds += GAP_LEARNING_RATIO * (now - self._seen_at - self._gap_seconds)
        self._seen_at = now
        step = min(max(STEP_PER_SECOND * self._gap_seconds, LEAST_STEP), MOST_STEP)
        if actual_seconds > raw_seconds * exp(self._log):
            self.without += 1
            self._log += COVERED_RATIO * step
        else:
            self.within += 1
            self._log -= (1.0 - COVERED_RATIO) * step
        self._log = min(max(self._log, log(LEAST_FACTOR)), log(MOST_FACTOR))

    def _kept(self, now: float) -> float:
        if self._seen_at is None:
            return 1.0
        unsampled = now - self._seen_at - UNSAMPLED_SECONDS
        return 1.0 if unsampled <= 0.0 else exp(-unsampled / FORGETTING_SECONDS)
