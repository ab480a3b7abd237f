"""Gaps between arrivals: their shape, whatever their mean.

A shape is a distribution of mean 1, stretched by the mean gap. The first gap of a stretch of traffic is not like the
others: whoever starts to look at a random instant falls into a long gap more often than into a short one, and waits
for its rest. With X the gap and L its length-biased version (density x f(x) / E[X]), the rest is U L, U uniform from 0
to 1. Starting so, the expected count over T seconds is exactly T / E[X]; starting with a full gap it would be off by
about (cv^2 - 1) / 2 in each stretch, which at a coefficient of variation of 6 is 17 requests. L is Gamma(k + 1) for
Gamma(k), and s G^(1/c), G from Gamma(1 + 1/c), for Weibull(c, s). Source: Cox, Renewal Theory, 1962, section 5.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from random import Random

LEAST_SHAPE = 0.01
MOST_SHAPE = 1e6
LEAST_CV, MOST_CV = 0.001, 10.0
"""Of Gamma gaps: those of the two shapes."""


class Pattern(StrEnum):
    """A family of distributions, by the names that ServeGen uses."""

    EXPONENTIAL = "Exponential"
    GAMMA = "Gamma"
    WEIBULL = "Weibull"


@dataclass(frozen=True, slots=True)
class GapShape:
    """A distribution of gaps but for its mean.

    Args:
        pattern: the family.
        shape: its shape parameter, from `LEAST_SHAPE` to `MOST_SHAPE`: k of Gamma, c of Weibull; less than 1 is more
            bursty than Poisson. Not used for exponential gaps.

    Raises:
        ValueError: the shape is out of range.
    """

    pattern: Pattern
    shape: float = 1.0

    def __post_init__(self) -> None:
        if not LEAST_SHAPE <= self.shape <= MOST_SHAPE:
            raise ValueError(f"a shape from {LEAST_SHAPE:g} to {MOST_SHAPE:g} is accepted, not {self.shape}")

    def gap(self, mean_seconds: float, rng: "Random") -> float:
        """Return a gap between two arrivals, in seconds."""
        match self.pattern:
            case Pattern.EXPONENTIAL:
                return rng.expovariate(1.0 / mean_seconds)
            case Pattern.GAMMA:
                return rng.gammavariate(self.shape, mean_seconds / self.shape)
            case Pattern.WEIBULL:
                return rng.weibullvariate(self._weibull_scale(mean_seconds), self.shape)
            case _:
                assert_never(self.pattern)

    def first(self, mean_seconds: float, rng: "Random") -> float:
        """Return the time from a random instant to the next arrival, in seconds."""
        match self.pattern:
            case Pattern.EXPONENTIAL:
                return rng.expovariate(1.0 / mean_seconds)
            case Pattern.GAMMA:
                around = rng.gammavariate(self.shape + 1, mean_seconds / self.shape)
            case Pattern.WEIBULL:
                bulk = rng.gammavariate(1 + 1 / self.shape, 1.0)
                around = self._weibull_scale(mean_seconds) * bulk ** (1 / self.shape)
            case _:
                assert_never(self.pattern)
        return rng.uniform(0.0, around)

    def _weibull_scale(self, mean_seconds: float) -> float:
        return mean_seconds / math.gamma(1 + 1 / self.shape)


POISSON = GapShape(Pattern.EXPONENTIAL)


def gamma_gaps(cv: float) -> GapShape:
    """Return Gamma gaps of a coefficient of variation: 1 is Poisson, above it bursts, below it regularity.

    Raises:
        ValueError: `cv` is not from `LEAST_CV` to `MOST_CV`.
    """
    if not LEAST_CV <= cv <= MOST_CV:
        raise ValueError(f"a coefficient of variation from {LEAST_CV:g} to {MOST_CV:g} is accepted, not {cv}")
    return GapShape(Pattern.GAMMA, 1 / cv**2)
