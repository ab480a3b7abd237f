"""Single values are found on good pages and missed on bad ones; no page raises."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.engines.metrics_text import MOST_LINES, labelled_values, plain_values

NAMES = ("queue_size", "batch_tokens")


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (b"queue_size 3\nbatch_tokens 4e3\n", {"queue_size": 3.0, "batch_tokens": 4000.0}),
        (b"# HELP queue_size x\n# TYPE queue_size gauge\nqueue_size 3", {"queue_size": 3.0}),
        (b'queue_size_total 9\nqueue_size 3\nqueue_size_bucket{le="1"} 2\n', {"queue_size": 3.0}),
        (b'queue_size{shard="0"} 3\n', {}),
        (b"queue_size -3\n", {"queue_size": -3.0}),
        (b"queue_size 3\nqueue_size 900\n", {}),
        (b"queue_size many\nbatch_tokens 1\n", {"batch_tokens": 1.0}),
        (b"queue_size\n", {}),
        (b"queue_size{\n", {}),
        (b"queue_size \xff\xfe\n", {}),
        (b"queue_size " + b"1" * 5000, {}),
        (b"other queue_size 3\n", {}),
        (b"<html><body>queue_size 3</body></html>", {}),
        (b"", {}),
        (b"queue_size 3\n" * (MOST_LINES + 1), {}),
    ],
)
def test_a_value_is_told_only_where_it_stands_once_and_readably(page: bytes, told: dict[str, float]) -> None:
    assert plain_values(page, NAMES) == told


def test_what_is_no_number_is_left_for_the_judge() -> None:
    assert math.isnan(plain_values(b"queue_size NaN\n", NAMES)["queue_size"])
    assert plain_values(b"queue_size +Inf\n", NAMES) == {"queue_size": math.inf}


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_page_raises(rest: bytes) -> None:
    plain_values(rest, NAMES)
    plain_values(b"queue_size" + rest, NAMES)
    plain_values(b"queue_size 3\nbatch_tokens{" + rest, NAMES)


@pytest.mark.parametrize("page", [b"\n" * 2**20, b"queue_size 1\n" * 2**16, b"queue_size{" + b'a="b",' * 2**17])
def test_a_hostile_megabyte_tells_nothing(page: bytes) -> None:
    assert plain_values(page, NAMES) == {}


def test_labels_are_told_with_the_value_and_longer_names_are_not() -> None:
    page = b'queue_size{shard="0"} 3\nqueue_size{shard="1"} 4\nqueue_size_by{shard="1"} 9\n'
    told = labelled_values(page, NAMES)
    assert [(series.name, dict(series.labels), series.value) for series in told] == [
        ("queue_size", {"shard": "0"}, 3.0),
        ("queue_size", {"shard": "1"}, 4.0),
    ]
    assert labelled_values(page, NAMES, most_lines=2) == []
