"""Events out of a byte stream, however it was split."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.engines.sse import EventScanner


def events(*pieces: bytes, max_event_bytes: int = 10_000) -> list[bytes | None]:
    scanner = EventScanner(max_event_bytes)
    return [event for piece in pieces for event in scanner.feed(piece)] + scanner.end()


def events_by_the_standard(stream: bytes) -> list[bytes | None]:
    """The standard's rules on a whole stream, read line by line; the last event may lack its blank line."""
    found: list[bytes | None] = []
    data: list[bytes] = []
    for line in [*re.split(rb"\r\n|\n|\r", stream), b""]:
        if not line and data:
            found.append(b"\n".join(data))
            data = []
        elif line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
    return found


@pytest.mark.parametrize(
    ("stream", "found"),
    [
        (b"data: a\n\n", [b"a"]),
        (b"data: a\r\ndata: b\r\ndata: c\r\n\r\n", [b"a\nb\nc"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b"data: a\r\n\r\n", [b"a"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b":\n\ndata: a\n\n: keep-alive\n\n", [b"a"]),
        (b"event: error\nid: 1\nretry: 5\ndata: a\n\n", [b"a"]),
        (b"database: a\ndata a\nDATA: a\n\n", []),
        (b"data: a", [b"a"]),
        (b"data: a\n", [b"a"]),
        (b"data:\n\n", [b""]),
        (b"\n\n\n", []),
        (b"", []),
        ("data: \u2028\x85\x0b\x0c\n\n".encode(), ["\u2028\x85\x0b\x0c".encode()]),
    ],
)
def test_events_are_cut_as_the_standard_cuts_them(stream: bytes, found: list[bytes]) -> None:
    assert events(stream) == found
    assert events(*(stream[place : place + 1] for place in range(len(stream)))) == found
    assert all(events(stream[:place], stream[place:]) == found for place in range(len(stream)))


fragments = st.sampled_from(
    [b"data:", b"data: ", b"a", b"\n", b"\r", b"\r\n", b"\n\n", b":", b" ", b"event: x", b"[DONE]"]
)
streams = st.lists(fragments | st.binary(max_size=6), max_size=40).map(b"".join)


@given(streams, st.lists(st.integers(0, 200)))
def test_any_split_gives_the_events_of_the_whole(stream: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(places)]
    assert events(*pieces) == events(stream) == events_by_the_standard(stream)


whole_events = st.sampled_from(
    [
        b"data: a\n\n",
        b"data: \n\n",
        b"data:a\n\n",
        b"data: a\r\n\r\n",
        b"data: a\ndata: b\n\n",
        b":\n\n",
        b"data: a\r\n\n",
    ]
)


@given(st.lists(whole_events | streams, max_size=12))
def test_events_that_come_each_in_a_piece_of_its_own_are_those_of_the_whole(pieces: list[bytes]) -> None:
    assert events(*pieces) == events_by_the_standard(b"".join(pieces))


@given(st.lists(whole_events | fragments | st.binary(max_size=30), max_size=12), st.integers(5, 90))
def test_the_bound_does_not_depend_on_which_piece_an_event_comes_in(pieces: list[bytes], max_event_bytes: int) -> None:
    assert events(*pieces, max_event_bytes=max_event_bytes) == events(b"".join(pieces), max_event_bytes=max_event_bytes)


@given(streams, st.integers(1, 12), st.integers(5, 25))
def test_a_bound_on_events_falls_on_the_same_ones_however_the_stream_is_split(
    stream: bytes, size: int, max_event_bytes: int
) -> None:
    pieces = [stream[place : place + size] for place in range(0, len(stream), size)]
    assert events(*pieces, max_event_bytes=max_event_bytes) == events(stream, max_event_bytes=max_event_bytes)


def test_an_event_beyond_the_bound_is_seen_and_the_next_one_read() -> None:
    assert events(b"data: " + b"x" * 20_000 + b"\n\ndata: a\n\n") == [None, b"a"]
    assert events(b"data: xxxxxxxxx\n" * 200 + b"\ndata: a\n\n") == [None, b"a"]
    assert events(b":" + b"x" * 20_000 + b"\n\ndata: a\n\n") == [b"a"]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_bound_is_the_longest_line_that_is_kept_and_lines_are_charged_for_what_they_cost(size: int) -> None:
    def cut(stream: bytes) -> list[bytes | None]:
        pieces = (stream[place : place + size] for place in range(0, len(stream), size))
        return events(*pieces, max_event_bytes=200)

    assert cut(b"data: " + b"x" * (200 - 64) + b"\n\n") == [b"x" * (200 - 64)]
    assert cut(b"data: " + b"x" * (201 - 64) + b"\n\n") == [None]
    assert cut(b"data:\n" * 3 + b"\n") == [b"\n\n"]
    assert cut(b"data:\n" * 4 + b"\n") == [None]
    assert cut((b"data: " + b"x" * (200 - 64) + b"\n\n") * 3) == [b"x" * (200 - 64)] * 3
    assert cut(b"data:" + b" " * 195 + b"x\n\n" + b"data: y\n\n") == [None, b"y"]


def test_an_endless_line_and_an_endless_event_are_held_in_bounded_memory() -> None:
    scanner = EventScanner(1000)
    for _ in range(1000):
        assert scanner.feed(b"data: " + b"x" * 500) == []
        assert len(scanner._line) <= 1001
    scanner.feed(b"\n")
    for _ in range(1000):
        assert scanner.feed(b"data:\n") == []
        assert len(scanner._data) <= 1000 // 64
    assert scanner.feed(b"\n") == [None]
