"""Prometheus' two texts, a scrape and a range query's answer, to the increments of histogram buckets."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import orjson
from prometheus_client.parser import text_string_to_metric_families

from llmshed.errors import TraceError
from llmshed.workload.readers.lines import shown, whole_text

_BUCKET = "_bucket"
_LARGEST_COUNT = 1e15


@dataclass(frozen=True, slots=True)
class Increment:
    """How many values up to an edge one bucket counted.

    Args:
        histogram: name of the histogram, without `_bucket`.
        labels: labels of the series.
        edge: upper edge of the bucket, which may be infinite.
        count: values counted, of all narrower buckets too.
        step: the end of the step that counted them, in seconds since 1970; None for all time.
    """

    histogram: str
    labels: Mapping[str, str]
    edge: float
    count: float
    step: float | None = None


def scrape_increments(chunks: Iterable[bytes]) -> Iterator[Increment]:
    """Yield the buckets of a text exposition; all that are no buckets are passed over.

    Raises:
        TraceError: it is no exposition.
    """
    text = whole_text(chunks)
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name.endswith(_BUCKET):
                    count = _count(sample.value, sample.name)
                    yield Increment(sample.name.removesuffix(_BUCKET), sample.labels, _edge(sample.labels), count)
    except (ValueError, LookupError) as error:
        raise TraceError(f"not Prometheus' text format: {shown(str(error))}") from None


def range_increments(chunks: Iterable[bytes]) -> tuple[list[Increment], list[float]]:
    """Return the increments of a range query's answer, and the instants of its steps, in seconds since 1970.

    Raises:
        TraceError: it is not the answer of a range query over buckets, or has fewer than two instants.
    """
    try:
        answer = orjson.loads(whole_text(chunks))
    except orjson.JSONDecodeError as error:
        raise TraceError(f"not JSON: {error}") from None
    increments: list[Increment] = []
    instants: set[float] = set()
    for series in _matrix(answer):
        labels, samples = _labels(series), _samples(series)
        histogram, edge = labels["__name__"].removesuffix(_BUCKET), _edge(labels)
        instants.update(at for at, _ in samples)
        for (_, before), (at, after) in pairwise(samples):
            grown = after - before if after >= before else after
            increments.append(Increment(histogram, labels, edge, grown, at))
    if len(instants) < 2:
        raise TraceError("a range with fewer than two instants tells no rate; ask for a longer range")
    return increments, sorted(instants)


def _matrix(answer: Any) -> list[Any]:
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, dict) or data.get("resultType") != "matrix" or not isinstance(data.get("result"), list):
        raise TraceError("not the answer of /api/v1/query_range: no result of type matrix")
    return list(data["result"])


def _labels(series: Any) -> dict[str, str]:
    labels = series.get("metric") if isinstance(series, dict) else None
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise TraceError(f"a series without labels: {shown(series)}")
    if not labels.get("__name__", "").endswith(_BUCKET):
        raise TraceError(
            f"a series that is no _bucket, or whose name the query took away: {shown(labels)};"
            ' ask for {__name__=~"llmshed_(input|output)_tokens_bucket"}'
        )
    return labels


def _samples(series: dict[str, Any]) -> list[tuple[float, float]]:
    values = series.get("values")
    if not isinstance(values, list):
        raise TraceError(f"a series without values: {shown(series)}")
    samples = [_sample(value) for value in values]
    if any(later <= earlier for (earlier, _), (later, _) in pairwise(samples)):
        raise TraceError(f"a series whose instants do not rise: {shown(series.get('metric'))}")
    return samples


def _sample(value: Any) -> tuple[float, float]:
    match value:
        case [int() | float() as at, str() as text] if not isinstance(at, bool) and 0 <= at <= 1e11:
            return float(at), _count(_number(text), "a sample")
        case _:
            raise TraceError(f'a sample is {shown(value)}; [seconds, "count"] is accepted')


def _edge(labels: Mapping[str, str]) -> float:
    edge = _number(labels.get("le", ""))
    if math.isnan(edge):
        raise TraceError(f"a bucket's le is {shown(labels.get('le'))}; its upper edge is accepted")
    return edge


def _count(value: float, place: str) -> float:
    if not 0 <= value <= _LARGEST_COUNT:
        raise TraceError(f"{place} counts {value}; from 0 to {_LARGEST_COUNT:g} is accepted")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
