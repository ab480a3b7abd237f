"""Traffic from what Prometheus knows of it: length histograms and how fast they grow.

Two forms. A *scrape* (text exposition, what `/metrics` answers) has counts since the start of a process: one length
distribution, and no rate, which must be given. A *range* (the JSON of `/api/v1/query_range` over the `_bucket` series
of an input and an output histogram) has increments from step to step: rate and lengths of each step. Increments of all
series of a kind add up, whatever replica they are of; a counter that falls was restarted at 0.

Requests are made from them: Poisson arrivals at the rate of each step, lengths by inversion of the histograms, input
and output drawn independently. A burst shorter than a step, and a tie between input and output, are not in the data
and so not in the traffic. For llmshed's own histograms each lane is a kind of its own with its intent.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import merge
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

from llmshed.errors import TraceError
from llmshed.workload.arrivals import renewal_arrivals
from llmshed.workload.gaps import POISSON
from llmshed.workload.readers.histograms import FAMILIES, INTENTS, Buckets, Family
from llmshed.workload.readers.reading import Reading
from llmshed.workload.readers.series import Increment, range_increments, scrape_increments
from llmshed.workload.request import TracedRequest

if TYPE_CHECKING:
    from random import Random

    from llmshed.workload.quantiles import QuantileFunction

MOST_RATE_PER_SECOND = 1e6
ENOUGH_COUNTED = 20
"""A step with fewer values than this takes its lengths from the whole time."""


@dataclass(slots=True)
class _Kind:
    """What is known of one kind of requests, over all and step by step; steps are named by their ends."""

    input_all: Buckets = field(default_factory=Buckets)
    output_all: Buckets = field(default_factory=Buckets)
    input_steps: defaultdict[float, Buckets] = field(default_factory=lambda: defaultdict(Buckets))
    output_steps: defaultdict[float, Buckets] = field(default_factory=lambda: defaultdict(Buckets))


def read_scrape(chunks: Iterable[bytes], reading: Reading) -> Iterator[TracedRequest]:
    """Yield requests with the lengths of a scrape, at `reading.rate_per_second`.

    They last `reading.duration_seconds`, else until about as many were made as the scrape had counted.

    Raises:
        TraceError: the text is no exposition, has none of the histograms, or no rate was given.
    """
    kinds = _kinds(scrape_increments(chunks))
    counted = {name: kind.input_all.count for name, kind in kinds.items()}
    total = sum(counted.values())
    if reading.rate_per_second is None:
        raise TraceError(f"a scrape tells lengths and no rate; give the rate (it counted {total:.0f} requests)")
    lasts = total / reading.rate_per_second if reading.duration_seconds is None else reading.duration_seconds
    made = (
        _made(name, kind, None, reading.rate_per_second * counted[name] / total, (0.0, lasts), reading.rng)
        for name, kind in kinds.items()
    )
    return merge(*made, key=lambda request: request.at_seconds)


def read_range(chunks: Iterable[bytes], reading: Reading) -> Iterator[TracedRequest]:
    """Yield requests with the rates and lengths of each step of a range query; the first step starts at 0.

    They end with the last step, or after `reading.duration_seconds`.

    Raises:
        TraceError: the text is not the answer of a range query, or holds no increment of any of the histograms.
    """
    increments, ends = range_increments(chunks)
    kinds = _kinds(increments)
    for start, end in pairwise(ends):
        stop = end - ends[0] if reading.duration_seconds is None else min(end - ends[0], reading.duration_seconds)
        made = (
            _made(name, kind, end, kind.input_steps[end].count / (end - start), (start - ends[0], stop), reading.rng)
            for name, kind in kinds.items()
            if kind.input_steps[end].count > 0
        )
        yield from merge(*made, key=lambda request: request.at_seconds)
        if stop < end - ends[0]:
            return


def _made(
    name: str, kind: _Kind, step: float | None, rate: float, span: tuple[float, float], rng: "Random"
) -> Iterator[TracedRequest]:
    if rate > MOST_RATE_PER_SECOND:
        raise TraceError(f"{rate:g} requests a second; at most {MOST_RATE_PER_SECOND:g} are accepted")
    input_tokens = _lengths(kind.input_steps, kind.input_all, step)
    output_tokens = _lengths(kind.output_steps, kind.output_all, step)
    if input_tokens is None or output_tokens is None:
        return iter(())
    return (
        TracedRequest(
            at,
            max(1, ceil(input_tokens.at(rng.random()))),
            max(1, ceil(output_tokens.at(rng.random()))),
            intent=INTENTS.get(name),
        )
        for at in renewal_arrivals(POISSON, rate, rng, *span)
    )


def _lengths(steps: dict[float, Buckets], whole: Buckets, step: float | None) -> "QuantileFunction | None":
    own = None if step is None else steps.get(step)
    return (whole if own is None or own.count < ENOUGH_COUNTED else own).quantiles()


def _kinds(increments: Iterable[Increment]) -> dict[str, _Kind]:
    """Return the kinds of the first family that has requests, in order of their names."""
    by_family: dict[Family, defaultdict[str, _Kind]] = {family: defaultdict(_Kind) for family in FAMILIES}
    for increment in increments:
        for family, kinds in by_family.items():
            _count(increment, family, kinds)
    for kinds in by_family.values():
        served = {name: kind for name, kind in sorted(kinds.items()) if kind.input_all.count > 0}
        outputs = [kind.output_all for kind in served.values() if kind.output_all.count > 0]
        if outputs:
            return {name: _with_outputs(kind, outputs) for name, kind in served.items()}
    pairs = "; ".join(f"{family.input_name} with {family.output_name}" for family in FAMILIES)
    raise TraceError(f"no requests in a pair of these histograms: {pairs}")


def _with_outputs(kind: _Kind, outputs: list[Buckets]) -> _Kind:
    """Give a kind of which nothing was served, refused whole, the output lengths of all others."""
    if kind.output_all.count <= 0:
        for other in outputs:
            for edge, count in other.cumulative.items():
                kind.output_all.add(edge, count)
    return kind


def _count(increment: Increment, family: Family, kinds: defaultdict[str, _Kind]) -> None:
    if increment.histogram not in {family.input_name, family.output_name}:
        return
    kind = kinds[increment.labels.get(family.kind_label, "") if family.kind_label else ""]
    is_input = increment.histogram == family.input_name
    (kind.input_all if is_input else kind.output_all).add(increment.edge, increment.count)
    if increment.step is not None:
        (kind.input_steps if is_input else kind.output_steps)[increment.step].add(increment.edge, increment.count)
