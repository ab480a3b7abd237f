"""What a trace is made of, in one passage over it: how much, how bursty, how long.

The memory is that of two sketches and the names of the tenants. Counts, durations, means, rate and variation are
exact; quantiles, and so the edges of the input quartiles, are within 1 % of the value at their rank.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from llmshed.workload.request import TracedRequest
from llmshed.workload.sketch import QuantileSketch

QUANTILE_SHARES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
MOST_TENANTS = 10_000
"""Tenants told apart; a trace with more is said to have this many."""


@dataclass(frozen=True, slots=True)
class LengthSummary:
    """Lengths in tokens.

    Args:
        mean: arithmetic mean.
        quantiles: by the shares of `QUANTILE_SHARES`.
        total: sum.
    """

    mean: float
    quantiles: dict[float, float]
    total: int


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """A trace in a few numbers.

    Args:
        requests: how many; at least 1.
        duration_seconds: first to last arrival.
        rate_per_second: requests by duration; None when all come at once.
        interarrival_cv: coefficient of variation of the gaps, 1 for Poisson; None likewise.
        input_tokens: lengths of the prompts.
        output_tokens: true lengths of the answers, ceilings apart.
        input_quartile_edges: the three lengths that part the prompts in quarters; a prompt of just that length is
            below.
        tenants: how many, at most `MOST_TENANTS`.
        imputed: requests whose true length is a guess.
        with_ceiling: requests that name an output ceiling.
        cut: those of them whose answer will end at it before its true length.
        with_blocks: requests whose prefix is known.
        with_session: requests that belong to a named conversation.
    """

    requests: int
    duration_seconds: float
    rate_per_second: float | None
    interarrival_cv: float | None
    input_tokens: LengthSummary
    output_tokens: LengthSummary
    input_quartile_edges: tuple[int, int, int]
    tenants: int
    imputed: int
    with_ceiling: int
    cut: int
    with_blocks: int
    with_session: int


class TraceTally:
    """Counts requests as they pass; `summary` can be asked at any time after the first."""

    def __init__(self) -> None:
        self._requests = self._imputed = self._with_ceiling = self._cut = self._with_blocks = self._with_session = 0
        self._first = self._last = 0.0
        self._gap_squares = 0.0
        self._input, self._output = QuantileSketch(), QuantileSketch()
        self._input_total = self._output_total = 0
        self._tenants: set[str] = set()

    def passing(self, requests: Iterable[TracedRequest]) -> Iterator[TracedRequest]:
        """Yield the requests unchanged and count each."""
        for request in requests:
            self.add(request)
            yield request

    def add(self, request: TracedRequest) -> None:
        """Count a request; it does not come before the one counted last."""
        self._add_arrival(request.at_seconds)
        self._input.add(request.input_tokens)
        self._output.add(request.true_output_tokens)
        self._input_total += request.input_tokens
        self._output_total += request.true_output_tokens
        self._imputed += request.imputed
        asked = request.asked_output_tokens
        self._with_ceiling += asked is not None
        self._cut += asked is not None and asked < request.true_output_tokens
        self._with_blocks += request.blocks is not None
        self._with_session += request.session is not None
        if len(self._tenants) < MOST_TENANTS:
            self._tenants.add(request.tenant)

    def summary(self) -> TraceSummary:
        """Return the summary of what was counted.

        Raises:
            ValueError: nothing was counted yet.
        """
        if not self._requests:
            raise ValueError("a trace without requests has no summary")
        duration = self._last - self._first
        return TraceSummary(
            requests=self._requests,
            duration_seconds=duration,
            rate_per_second=self._requests / duration if duration > 0 else None,
            interarrival_cv=self._interarrival_cv(duration),
            input_tokens=_lengths(self._input, self._input_total),
            output_tokens=_lengths(self._output, self._output_total),
            input_quartile_edges=_edges(self._input),
            tenants=len(self._tenants),
            imputed=self._imputed,
            with_ceiling=self._with_ceiling,
            cut=self._cut,
            with_blocks=self._with_blocks,
            with_session=self._with_session,
        )

    def _add_arrival(self, at_seconds: float) -> None:
        if self._requests:
            self._gap_squares += (at_seconds - self._last) ** 2
        else:
            self._first = at_seconds
        self._last = at_seconds
        self._requests += 1

    def _interarrival_cv(self, duration: float) -> float | None:
        """Return sqrt(E[g^2] / E[g]^2 - 1) over the gaps g; their sum is the duration."""
        gaps = self._requests - 1
        if duration <= 0:
            return None
        return math.sqrt(max(0.0, self._gap_squares * gaps / duration**2 - 1.0))


def summarise(requests: Iterable[TracedRequest]) -> TraceSummary:
    """Return the summary of a trace, which is consumed.

    Raises:
        ValueError: it has no request.
    """
    tally = TraceTally()
    for request in requests:
        tally.add(request)
    return tally.summary()


def quartile_edges(requests: Iterable[TracedRequest]) -> tuple[int, int, int]:
    """Return the edges of the input quartiles as a summary has them, without the rest; zeros without any request."""
    lengths = QuantileSketch()
    for request in requests:
        lengths.add(request.input_tokens)
    return _edges(lengths)


def _lengths(sketch: QuantileSketch, total: int) -> LengthSummary:
    told = zip(QUANTILE_SHARES, sketch.quantiles(QUANTILE_SHARES), strict=True)
    return LengthSummary(total / sketch.count, {share: value for share, value in told if value is not None}, total)


def _edges(sketch: QuantileSketch) -> tuple[int, int, int]:
    first, second, third = (round(edge or 0) for edge in sketch.quantiles((0.25, 0.5, 0.75)))
    return first, second, third
