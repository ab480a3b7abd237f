"""When requests come: evenly, at random, in bursts, or as the trace says."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, chain, count
from typing import TYPE_CHECKING

from llmshed.workload.gaps import LEAST_CV, MOST_CV, POISSON, GapShape, gamma_gaps
from llmshed.workload.request import TracedRequest

if TYPE_CHECKING:
    from random import Random

_GAMMA = re.compile(r"gamma:([0-9]{1,2}(?:\.[0-9]{1,3})?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ArrivalProcess:
    """How requests come, whatever their trace says: at equal distances, or after independent gaps of one shape.

    Args:
        name: as an operator types it: `constant`, `poisson` or `gamma:2.5`.
        interarrival_cv: coefficient of variation of the gaps; 0 where they are equal.
        shape: distribution of the gaps; None where they are equal.
    """

    name: str
    interarrival_cv: float
    shape: GapShape | None

    def arrivals(self, rate_per_second: float, rng: "Random") -> Iterator[float]:
        """Yield arrivals without end, the first at 0 as that of a trace.

        Args:
            rate_per_second: 1 by the mean gap.
            rng: what the gaps are drawn from; one seed gives the same gaps at every rate, stretched.

        Raises:
            ValueError: the rate is not positive and finite.
        """
        rate = _rate(rate_per_second)
        shape = self.shape
        if shape is None:
            return constant_arrivals(rate)
        return accumulate(chain((0.0,), (shape.gap(1.0 / rate, rng) for _ in count())))


CONSTANT = ArrivalProcess("constant", 0.0, None)
POISSON_ARRIVALS = ArrivalProcess("poisson", 1.0, POISSON)


def arrival_process(text: str) -> ArrivalProcess | None:
    """Return the process of a name; None for the trace's own arrivals.

    Args:
        text: `trace`, `constant`, `poisson`, or `gamma:` with the coefficient of variation of the gaps, from `LEAST_CV`
            to `MOST_CV` with at most three decimals.

    Raises:
        ValueError: it is none of these.
    """
    if text == "trace":
        return None
    found = next((one for one in (CONSTANT, POISSON_ARRIVALS) if one.name == text), None)
    return _gamma_arrivals(text) if found is None else found


def constant_arrivals(rate_per_second: float) -> Iterator[float]:
    """Yield arrivals at equal distances without end, the first at 0.

    Raises:
        ValueError: the rate is not positive and finite.
    """
    rate = _rate(rate_per_second)
    return (number / rate for number in count())


def renewal_arrivals(
    shape: GapShape, rate_per_second: float, rng: "Random", start_seconds: float = 0.0, end_seconds: float = math.inf
) -> Iterator[float]:
    """Yield arrivals with independent gaps of one shape from `start_seconds` on, all before `end_seconds`.

    The process is stationary: any second of it expects `rate_per_second` arrivals, the first one too.

    Args:
        shape: `POISSON`, `gamma_gaps(cv)` or another.
        rate_per_second: arrivals a second.
        rng: what the gaps are drawn from.
        start_seconds: where to start to look.
        end_seconds: where to stop; without it there is no end.

    Raises:
        ValueError: the rate is not positive and finite.
    """
    return _renewal(shape, 1.0 / _rate(rate_per_second), rng, start_seconds, end_seconds)


def with_arrivals(requests: Iterable[TracedRequest], arrivals: Iterable[float]) -> Iterator[TracedRequest]:
    """Yield the requests in their order at other times, as long as there are both."""
    return (replace(request, at_seconds=at) for at, request in zip(arrivals, requests, strict=False))


def _gamma_arrivals(text: str) -> ArrivalProcess:
    typed = _GAMMA.fullmatch(text)
    cv = float(typed[1]) if typed is not None else math.nan
    if not LEAST_CV <= cv <= MOST_CV:
        raise ValueError(
            "accepted are trace, constant, poisson, and gamma with the coefficient of variation of its gaps, from"
            f" {LEAST_CV:g} to {MOST_CV:g} with at most three decimals, as in gamma:2.5"
        )
    return ArrivalProcess(f"gamma:{cv:g}", cv, gamma_gaps(cv))


def _renewal(shape: GapShape, mean: float, rng: "Random", start: float, end: float) -> Iterator[float]:
    at = start + shape.first(mean, rng)
    while at < end:
        yield at
        at += shape.gap(mean, rng)


def _rate(rate_per_second: float) -> float:
    if not 0 < rate_per_second < math.inf:
        raise ValueError(f"a rate is more than 0 requests a second and finite, not {rate_per_second}")
    return rate_per_second
