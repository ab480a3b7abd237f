"""When requests come: evenly, at random, in bursts, or as the trace says."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from llmshed.workload.gaps import GapShape
from llmshed.workload.request import TracedRequest

if TYPE_CHECKING:
    from random import Random


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


def _renewal(shape: GapShape, mean: float, rng: "Random", start: float, end: float) -> Iterator[float]:
    at = start + shape.first(mean, rng)
    while at < end:
        yield at
        at += shape.gap(mean, rng)


def _rate(rate_per_second: float) -> float:
    if not 0 < rate_per_second < math.inf:
        raise ValueError(f"a rate is more than 0 requests a second and finite, not {rate_per_second}")
    return rate_per_second
