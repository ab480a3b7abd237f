"""ServeGen's second file."""

import json
from typing import Any

import pytest

from llmshed.errors import TraceError
from llmshed.workload.readers.servegen_lengths import read_lengths

PART: dict[str, Any] = {"input_tokens": [10, 20], "output_tokens": [1, 2]}


def content(**fields: Any) -> bytes:
    return json.dumps({"quantiles": [50, 100], "clients": {"a": {"0": PART}}} | fields).encode()


def test_each_part_of_the_day_holds_until_the_next() -> None:
    parts = {"21600": {"input_tokens": [30, 40], "output_tokens": [3, 4]}, "7200": PART}
    lengths = read_lengths([content(clients={"a": parts})])["a"]
    assert [lengths.at(at)[0].at(0.5) for at in (0.0, 7200.0, 21_599.0, 21_600.0, 86_400.0)] == [10, 10, 10, 30, 30]
    assert lengths.at(86_400.0)[1].at(1.0) == 4


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"quantiles": []}, "one value for each share"),
        ({"quantiles": [50, 101]}, "quantiles is .*from 0 to 100"),
        ({"quantiles": [100, 50]}, "shares rise"),
        ({"quantiles": "50"}, "a list of numbers"),
        ({"clients": []}, "clients is .*an object"),
        ({"clients": {"a": {}}}, "client 'a' has no lengths"),
        ({"clients": {"a": {"noon": PART}}}, "client 'a' has a part 'noon'"),
        ({"clients": {"a": {"9" * 30: PART}}}, "client 'a' has a part"),
        ({"clients": {"a": {"0": {}}}}, "client 'a', 0 has no input_tokens"),
        (
            {"clients": {"a": {"0": PART | {"output_tokens": [2, 1]}}}},
            "output_tokens of client 'a', 0: .*never decrease",
        ),
        ({"clients": {"a": {"0": PART | {"output_tokens": [1]}}}}, "one value for each share"),
        ({"clients": {"a": {"0": PART | {"output_tokens": [-1, 1]}}}}, "a list of numbers from 0"),
        ({"clients": {"a": {"0": PART | {"output_tokens": [True, 1]}}}}, "a list of numbers from 0"),
        ({"clients": {"a": {"0": PART, "00": PART | {"output_tokens": None}}}}, "a list of numbers from 0"),
    ],
)
def test_what_is_broken_is_told_with_its_place(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(TraceError, match=told):
        read_lengths([content(**fields)])


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"null", b"{}", b'{"quantiles": [1]}', b"\xff", b'{"quantiles": [NaN]}']
)
def test_what_is_no_lengths_is_told(text: bytes) -> None:
    with pytest.raises(TraceError):
        read_lengths([text])
