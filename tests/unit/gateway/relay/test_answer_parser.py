"""Bytes to one answer: what is its head, what its body, where it ends, and what makes it useless."""

import asyncio
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.gateway.relay.answer_parser import MAX_HEAD_BYTES, AnswerParser

OK = b"HTTP/1.1 200 OK\r\nX-A: 1\r\n"
WHOLE = OK + b"Content-Length: 5\r\n\r\nhello"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + WHOLE
TRAILED = OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n"

New = Callable[[], AnswerParser]


@pytest.fixture
def new() -> Iterator[New]:
    loop = asyncio.new_event_loop()
    yield lambda: AnswerParser(loop)
    loop.close()


def fed(parser: AnswerParser, *pieces: bytes) -> bytes:
    return b"".join(parser.feed(piece) for piece in pieces)


@pytest.mark.parametrize("raw", [WHOLE, CHUNKED, CONTINUED, TRAILED])
def test_an_answer_is_the_same_however_its_bytes_come(new: New, raw: bytes) -> None:
    for size in (len(raw), 1, 7):
        parser = new()
        body = fed(parser, *(raw[place : place + size] for place in range(0, len(raw), size)))
        assert body == b"hello"
        assert parser.head is not None
        assert (parser.head.status, parser.head.headers["x-a"]) == (200, "1")
        assert (parser.over, parser.fault, parser.reusable) == (True, None, True)


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.integers(1, 60))
def test_chunks_of_any_bytes_come_out_as_they_were(parts: list[bytes], size: int) -> None:
    loop = asyncio.new_event_loop()
    parser = AnswerParser(loop)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    raw = OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    assert fed(parser, *(raw[place : place + size] for place in range(0, len(raw), size))) == b"".join(parts)
    assert (parser.over, parser.fault) == (True, None)
    loop.close()


def test_a_body_without_a_length_ends_with_its_connection(new: New) -> None:
    parser = new()
    assert (fed(parser, OK + b"\r\nhel", b"lo"), parser.over) == (b"hello", False)
    parser.end()
    assert (parser.over, parser.fault, parser.reusable) == (True, None, False)


@pytest.mark.parametrize("head", [b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\n\r\n"])
def test_a_status_without_a_body_ends_with_its_head(new: New, head: bytes) -> None:
    parser = new()
    assert fed(parser, head) == b""
    assert (parser.over, parser.fault) == (True, None)


@pytest.mark.parametrize(
    "raw",
    [
        WHOLE.replace(b"X-A: 1", b"Connection: close"),
        WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"),
        WHOLE + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_what_ends_the_connection_or_comes_unasked_leaves_it_useless_for_another_request(new: New, raw: bytes) -> None:
    parser = new()
    assert fed(parser, raw) == b"hello"
    assert (parser.over, parser.fault, parser.reusable) == (True, None, False)


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b""),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", b"hello"),
        (OK + b"Content-Length: 9\r\n\r\nhello", b"hello"),
        (OK, b""),
        (b"", b""),
    ],
)
def test_an_end_before_the_end_is_a_fault(new: New, raw: bytes, body: bytes) -> None:
    parser = new()
    assert (parser.feed(raw), parser.over) == (body, False)
    parser.end()
    assert (parser.over, parser.fault is None) == (True, False)


@pytest.mark.parametrize("bad", [b"zz\r\n", b"-2\r\n", b"2\r\nabc\r\n", b"fffffffffffffffff\r\n"])
def test_what_came_before_a_broken_chunk_is_not_lost(new: New, bad: bytes) -> None:
    parser = new()
    good = b"5\r\nhello\r\n"
    assert parser.feed(OK + b"Transfer-Encoding: chunked\r\n\r\n") == b""
    assert parser.feed(good + bad).startswith(b"hello")
    assert (parser.over, parser.reusable) == (True, False)
    assert parser.fault == "the body does not end as its framing says"


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        (b"Transfer-Encoding: gzip\r\n", "its answer has a transfer coding other than chunked"),
        (b"Transfer-Encoding: identity, chunked\r\n", "its answer has a transfer coding other than chunked"),
        (b"Content-Length: 2\r\nContent-Length: 2\r\n", "its answer is not strict HTTP"),
        (b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "its answer is not strict HTTP"),
    ],
)
def test_a_length_with_two_readings_is_a_fault_before_the_body(new: New, fields: bytes, fault: str) -> None:
    parser = new()
    assert parser.feed(OK + fields + b"\r\n") == b""
    assert (parser.head, parser.over, parser.fault) == (None, True, fault)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nxx",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/0.9 200 OK\r\n\r\n",
        b"HTTP/1.1 099 Low\r\n\r\n",
        b"220 smtp.example ESMTP\r\n",
    ],
)
def test_what_is_no_answer_to_a_request_is_a_fault(new: New, raw: bytes) -> None:
    parser = new()
    assert parser.feed(raw) == b""
    assert (parser.head, parser.over, parser.fault) == (None, True, "its answer is not strict HTTP")


@pytest.mark.parametrize("piece", [b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", b"\r\n"])
def test_interim_answers_without_an_end_are_cut_off(new: New, piece: bytes) -> None:
    parser = new()
    for _ in range(MAX_HEAD_BYTES // len(piece) + 2):
        assert parser.feed(piece) == b""
    assert parser.fault == "its answer is not strict HTTP"
