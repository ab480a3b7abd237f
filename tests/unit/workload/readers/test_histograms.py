"""Buckets to distributions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.workload.readers.histograms import Buckets


def buckets(**cumulative: float) -> Buckets:
    return Buckets({math.inf if edge == "inf" else float(edge[1:]): count for edge, count in cumulative.items()})


def test_values_are_spread_evenly_inside_their_bucket() -> None:
    told = buckets(_10=50, _20=100, inf=100).quantiles()
    assert told is not None
    assert [told.at(share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)] == [0, 5, 10, 15, 20]


def test_an_empty_bucket_holds_no_value() -> None:
    told = buckets(_10=50, _20=50, _30=100, inf=100).quantiles()
    assert told is not None
    assert not [share for share in range(1001) if 10 < told.at(share / 1000) < 20]


def test_values_beyond_the_last_edge_count_as_that_edge() -> None:
    told = buckets(_10=50, _20=50, inf=100).quantiles()
    assert told is not None
    assert [told.at(share) for share in (0.25, 0.6, 1.0)] == [5, 20, 20]


def test_values_all_beyond_the_last_edge_count_as_that_edge() -> None:
    told = buckets(_10=0, _20=0, inf=100).quantiles()
    assert told is not None
    assert [told.at(share) for share in (0.0, 1.0)] == [20, 20]


def test_a_histogram_without_its_infinite_bucket_is_taken_as_it_is() -> None:
    told = buckets(_10=50, _20=100).quantiles()
    assert told is not None
    assert told.at(1.0) == 20


@pytest.mark.parametrize("empty", [Buckets(), buckets(_10=0, inf=0), buckets(inf=5)])
def test_nothing_counted_tells_nothing(empty: Buckets) -> None:
    assert empty.quantiles() is None


def test_series_of_one_edge_add_up() -> None:
    sum_of_two = Buckets()
    for count in (3.0, 4.0):
        sum_of_two.add(10.0, count)
    assert sum_of_two.count == 7.0


@given(st.dictionaries(st.floats(allow_nan=False), st.floats(0, 1e15), min_size=1), st.floats(0, 1))
def test_torn_buckets_still_give_lengths_within_their_edges(cumulative: dict[float, float], share: float) -> None:
    told = Buckets(cumulative).quantiles()
    finite = [edge for edge in cumulative if math.isfinite(edge) and edge > 0]
    assert told is None or 0 <= told.at(share) <= max(finite)
