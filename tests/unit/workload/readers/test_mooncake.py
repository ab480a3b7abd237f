"""The reader of Mooncake's traces: prefixes against the published statistics, sessions against a plain search."""

import json
from pathlib import Path
from typing import Any

import pytest

from fakes.traces import read_file, read_text
from llmshed.errors import TraceError
from llmshed.workload.readers.mooncake import read_mooncake
from llmshed.workload.request import TracedRequest

NAME = "mooncake_conversation_first40min.jsonl.gz"


@pytest.fixture(scope="module")
def requests(data_dir: Path) -> list[TracedRequest]:
    return read_file(read_mooncake, data_dir / "traces" / NAME)


@pytest.fixture(scope="module")
def facts(data_dir: Path) -> dict[str, Any]:
    slices: dict[str, Any] = json.loads((data_dir / "traces" / "stats.json").read_text("utf-8"))["slices"]
    return dict(slices[NAME])


def ids_of(request: TracedRequest) -> tuple[int, ...]:
    assert request.blocks is not None
    return request.blocks.ids


def line(**fields: object) -> str:
    whole = {"timestamp": 0, "input_length": 1000, "output_length": 10, "hash_ids": [0, 1]} | fields
    return json.dumps(whole) + "\n"


def test_the_published_file_is_read_whole(requests: list[TracedRequest], facts: dict[str, Any]) -> None:
    assert len(requests) == facts["requests"]
    assert requests[-1].at_seconds == facts["duration_s"]
    assert len({request.at_seconds for request in requests}) == facts["distinct_timestamps"]


def test_its_prefixes_hit_as_often_as_published(requests: list[TracedRequest], facts: dict[str, Any]) -> None:
    seen: set[int] = set()
    hits = blocks = with_hit = hit_tokens = 0
    for request in requests:
        assert request.blocks is not None
        ids, unit = request.blocks.ids, request.blocks.unit_tokens
        first_new = next((place for place, one in enumerate(ids) if one not in seen), len(ids))
        hits, blocks, with_hit = hits + first_new, blocks + len(ids), with_hit + (first_new > 0)
        hit_tokens += min(first_new * unit, request.input_tokens)
        seen.update(ids)
    told = facts["prefix"]
    assert hits / blocks == pytest.approx(told["unbounded_cache_block_hit_rate"], abs=0.00006)
    assert hit_tokens / sum(one.input_tokens for one in requests) == pytest.approx(
        told["unbounded_cache_token_hit_rate"], abs=0.00006
    )
    assert with_hit / len(requests) == pytest.approx(told["requests_with_a_hit"], abs=0.00006)
    assert len(seen) == told["distinct_blocks"]
    assert len({ids_of(request)[0] for request in requests}) == told["distinct_first_blocks"]


def test_its_sessions_are_those_that_a_plain_search_finds(requests: list[TracedRequest]) -> None:
    found: list[int] = []
    part = requests[:1500]
    opened = 0
    for place, request in enumerate(part):
        best = (0, -1)
        for earlier in range(place):
            whole = part[earlier].input_tokens // 512
            begins = whole >= 2 and ids_of(request)[:whole] == ids_of(part[earlier])[:whole]
            if begins and request.at_seconds - part[earlier].at_seconds <= 1800:
                best = max(best, (whole, earlier))
        if best[0]:
            found.append(found[best[1]])
        else:
            opened += 1
            found.append(opened)
    assert [request.session for request in part] == [f"session-{number}" for number in found]
    assert 0 < opened < len(part)


def test_later_turns_of_a_session_mostly_grow(requests: list[TracedRequest]) -> None:
    last: dict[str | None, int] = {}
    grown = turns = 0
    for request in requests:
        if request.session in last:
            turns += 1
            grown += request.input_tokens >= last[request.session]
        last[request.session] = request.input_tokens
    assert turns > 2000
    assert grown / turns > 0.9


def test_a_line_without_ids_has_neither_blocks_nor_session() -> None:
    (request,) = read_text(read_mooncake, '{"timestamp": 5, "input_length": 7, "output_length": 3}')
    assert (request.at_seconds, request.blocks, request.session) == (0.0, None, None)


def test_milliseconds_may_have_a_fraction() -> None:
    requests = read_text(read_mooncake, line(timestamp=0.25) + line(timestamp=1000.75))
    assert requests[1].at_seconds == 1.0005


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[1]", "not an object with timestamp, input_length, output_length"),
        ('{"timestamp": 0}', "not an object with timestamp, input_length, output_length"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        (line(timestamp="0"), "timestamp is '0'; milliseconds from 0 on"),
        (line(timestamp=-1), "timestamp is -1"),
        (line(timestamp=1e300), "timestamp is 1e+300"),
        (line(timestamp=True), "timestamp is True"),
        (line(timestamp=None), "timestamp is None"),
        (line(timestamp=float("nan")), "not JSON"),
        (line(input_length=1.5), "input_length is 1.5; a whole number from 0 to 10000000"),
        (line(input_length=True), "input_length is True"),
        (line(output_length=-1), "output_length is -1"),
        (line(hash_ids="0"), "hash_ids is '0'; a list of whole numbers"),
        (line(hash_ids=[0, -1]), "hash_ids is [0, -1]"),
        (line(hash_ids=[0, 1.0]), "hash_ids is [0, 1.0]"),
        (line(hash_ids=[[0]]), "hash_ids is [[0]]"),
        (line(hash_ids=[0, 1, 2]), "3 hash_ids; 1000 tokens have 2 blocks of 512"),
    ],
)
def test_a_broken_line_is_told(text: str, told: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_text(read_mooncake, line() + text)
    assert str(caught.value).startswith("line 2: ")
    assert told in str(caught.value)
    assert len(str(caught.value)) < 250
