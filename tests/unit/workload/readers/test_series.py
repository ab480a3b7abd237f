"""Prometheus' texts, by what Prometheus' own documentation says of them."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from llmshed.errors import TraceError
from llmshed.workload.readers.series import range_increments, scrape_increments

Series = tuple[dict[str, str], list[tuple[float, str]]]


def answer(*series: Series) -> bytes:
    result = [{"metric": metric, "values": values} for metric, values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


def bucket(le: str = "10", **labels: str) -> dict[str, str]:
    return {"__name__": "x_tokens_bucket", "le": le, **labels}


def test_what_the_client_library_writes_is_read() -> None:
    registry = CollectorRegistry()
    histogram = Histogram("x_tokens", "help", ["lane"], registry=registry, buckets=(10, 20))
    for value in (5, 15, 15, 25):
        histogram.labels("bulk").observe(value)
    increments = list(scrape_increments([generate_latest(registry)]))
    assert [(one.histogram, one.labels["lane"], one.edge, one.count, one.step) for one in increments] == [
        ("x_tokens", "bulk", 10.0, 1.0, None),
        ("x_tokens", "bulk", 20.0, 3.0, None),
        ("x_tokens", "bulk", math.inf, 4.0, None),
    ]


@pytest.mark.parametrize("name", ["vllm_v0_idle.prom", "vllm_v1_docs_excerpt.prom", "sglang_overloaded.prom"])
def test_scrapes_of_engines_are_read(data_dir: Path, name: str) -> None:
    increments = list(scrape_increments([(data_dir / "metrics" / name).read_bytes()]))
    lines = [line for line in (data_dir / "metrics" / name).read_text("utf-8").splitlines() if "_bucket{" in line]
    assert len(increments) == len(lines) > 0


@pytest.mark.parametrize(
    "text",
    [
        b"a{b",
        b"# TYPE\nx y\n",
        b"\x00",
        b"\xff",
        b'x_bucket{le="a"} 1\n',
        b"x_bucket{} 1\n",
        b'x_bucket{le="1"} NaN\n',
        b'x_bucket{le="1"} -1\n',
        b'x_bucket{le="1"} 1e300\n',
    ],
)
def test_what_is_no_exposition_is_told(text: bytes) -> None:
    with pytest.raises(TraceError):
        list(scrape_increments([text]))


def test_a_range_gives_what_was_counted_from_step_to_step() -> None:
    increments, instants = range_increments([answer((bucket(), [(100, "5"), (110, "7"), (120, "7")]))])
    assert instants == [100.0, 110.0, 120.0]
    assert [(one.step, one.count) for one in increments] == [(110.0, 2.0), (120.0, 0.0)]


def test_a_counter_that_falls_started_again_at_0() -> None:
    increments, _ = range_increments([answer((bucket(), [(100, "50"), (110, "3")]))])
    assert [one.count for one in increments] == [3.0]


def test_a_series_that_begins_late_counts_from_its_first_sample() -> None:
    whole: Series = (bucket(replica="a"), [(100, "1"), (110, "2"), (120, "3")])
    late: Series = (bucket(replica="b"), [(110, "40"), (120, "41")])
    increments, instants = range_increments([answer(whole, late)])
    assert instants == [100.0, 110.0, 120.0]
    assert sum(one.count for one in increments) == 3.0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"{", "not JSON"),
        (b"[]", "not the answer of /api/v1/query_range"),
        (b'{"status":"error","error":"x"}', "no result of type matrix"),
        (b'{"data":{"resultType":"vector","result":[]}}', "no result of type matrix"),
        (answer(), "fewer than two instants"),
        (answer((bucket(), [(100, "5")])), "fewer than two instants"),
        (answer(({"le": "10"}, [(100, "5"), (110, "6")])), "whose name the query took away"),
        (answer(({"__name__": "x_sum"}, [])), "no _bucket"),
        (answer((bucket("a"), [(100, "5"), (110, "6")])), "le is 'a'"),
        (answer((bucket("nan"), [(100, "5"), (110, "6")])), "le is 'nan'"),
        (answer((bucket(), [(100, "5"), (100, "6")])), "instants do not rise"),
        (answer((bucket(), [(100, "NaN"), (110, "6")])), "counts nan"),
        (answer((bucket(), [(100, "-1"), (110, "6")])), "counts -1"),
        (answer((bucket(), [(100, "x"), (110, "6")])), "counts nan"),
    ],
)
def test_a_broken_range_is_told(text: bytes, told: str) -> None:
    with pytest.raises(TraceError, match=told):
        range_increments([text])


@pytest.mark.parametrize(
    "sample", [5, [], [1], [1, 2], ["1", "2"], [True, "2"], [-1, "2"], [1e12, "2"], [1, "2", 3], None]
)
def test_a_broken_sample_is_told(sample: Any) -> None:
    series: Any = [sample, sample]
    with pytest.raises(TraceError, match="a sample is"):
        range_increments([answer((bucket(), series))])


@pytest.mark.parametrize(
    "series", [5, None, {}, {"metric": {}}, {"metric": {"le": 5}}, {"metric": bucket(), "values": 5}]
)
def test_a_broken_series_is_told(series: Any) -> None:
    text = json.dumps({"data": {"resultType": "matrix", "result": [series]}}).encode()
    with pytest.raises(TraceError):
        range_increments([text])
