"""What a client may cost before, beside and behind its requests: heads, chunks, trailers, pipelines, protocols."""

import asyncio
import contextlib
import itertools
import socket
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from aiohttp import web

from fakes.house import House, house, raw, request_bytes
from fakes.wire import Answer, answers, read_out, talk
from llmshed.gateway.door import server
from llmshed.gateway.door.door import DataDoor

SETTINGS = "[server]\nmax_header_bytes = 4096\nmax_headers = 16\nmax_body_bytes = 200_000\n"
NATIVE = {"inputs": "Hello", "parameters": {"max_new_tokens": 1}}
CHUNKED = b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def gate() -> AsyncIterator[House]:
    async with house(SETTINGS) as running:
        yield running


async def _until_closed(gate: House, head: bytes, pieces: Iterator[bytes], most_bytes: int) -> tuple[list[Answer], int]:
    """Send pieces, each when the one before has been taken, until the listener closes; return what it said and took."""
    sent = 0
    async with raw(gate) as (reader, writer), asyncio.timeout(30):
        reading = asyncio.ensure_future(read_out(reader))
        with contextlib.suppress(ConnectionError):
            for piece in itertools.chain([head], pieces):
                if reading.done() or sent > most_bytes:
                    break
                writer.write(piece)
                await writer.drain()
                sent += len(piece)
                for _ in range(4):
                    await asyncio.sleep(0)
        assert sent <= most_bytes, "it was heard out"
        return answers(await reading), sent


HEADS = {
    "a request line": (b"GET /", (b"a" * 100 for _ in itertools.count())),
    "a field name": (b"GET /health HTTP/1.1\r\nHost: x\r\n", (b"a" * 100 for _ in itertools.count())),
    "a field value": (b"GET /health HTTP/1.1\r\nHost: x\r\nX-A: ", (b"a" * 100 for _ in itertools.count())),
    "fields": (b"GET /health HTTP/1.1\r\nHost: x\r\n", (b"X-%d: a\r\n" % n for n in itertools.count())),
    "large fields": (
        b"GET /health HTTP/1.1\r\nHost: x\r\n",
        (b"X-%d: %s\r\n" % (n, b"a" * 1_500) for n in itertools.count()),
    ),
}


async def test_a_head_without_end_is_refused_within_twice_its_bound(gate: House) -> None:
    for name, (head, pieces) in HEADS.items():
        (answer,), sent = await _until_closed(gate, head, pieces, most_bytes=3 * 4096)
        assert (name, answer.status, answer.reason) == (name, 431, "headers_too_large")
        assert sent > 100
        assert "aaaa" not in str(answer)


async def test_trailers_without_end_are_refused(gate: House) -> None:
    trailers = (b"X-%d: %s\r\n" % (n, b"a" * 1_000) for n in itertools.count())
    (answer,), _ = await _until_closed(gate, CHUNKED + b"2\r\n{}\r\n0\r\n", trailers, most_bytes=200_000)
    assert (answer.status, answer.reason) == (400, "malformed")


async def test_chunk_extensions_do_not_count_as_a_body(gate: House) -> None:
    chunks = (b"1;%s\r\n \r\n" % (b"a" * 1_000) for _ in range(100))
    content = b'{"inputs":"Hello","parameters":{"max_new_tokens":1}}'
    end = b"%x;b\r\n%s\r\n0;c\r\n\r\n" % (len(content), content)
    closing = CHUNKED.replace(b"Host: x", b"Host: x\r\nConnection: close")
    (answer,) = answers(await talk(gate.port, closing + b"".join(chunks) + end))
    assert answer.status == 200


async def test_many_small_chunks_cost_in_proportion_to_their_number(gate: House) -> None:
    """A quadratic cost would make four times the chunks sixteen times as dear; the bound leaves room for noise."""
    closing = CHUNKED.replace(b"Host: x", b"Host: x\r\nConnection: close")
    content = b'{"inputs":"Hello","parameters":{"max_new_tokens":1}}'
    end = b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)

    async def cost(chunks: int) -> float:
        request = closing + b"1\r\n \r\n" * chunks + end
        began = time.process_time()
        (answer,) = answers(await talk(gate.port, request))
        assert answer.status == 200
        return time.process_time() - began

    await cost(100)
    few, many = min([await cost(20_000) for _ in range(3)]), min([await cost(80_000) for _ in range(3)])
    assert many < 10 * few


async def test_requests_behind_one_that_runs_are_not_taken_without_end(
    gate: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go, held = asyncio.Event(), asyncio.Event()
    enter = DataDoor.__call__

    async def hold(own: DataDoor, request: web.BaseRequest) -> web.StreamResponse:
        held.set()
        await may_go.wait()
        return await enter(own, request)

    monkeypatch.setattr(DataDoor, "__call__", hold)
    burst = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 20_000
    async with raw(gate) as (_, writer):
        for _ in range(40):
            writer.write(burst)
        await held.wait()
        transport, before = writer.transport, -1
        while before != (left := transport.get_write_buffer_size()):
            before = left
            await asyncio.sleep(0.05)
        assert left > 20 * len(burst)
        transport.abort()
        may_go.set()


async def test_a_request_without_a_host_asks_no_name_server(gate: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: object) -> str:
        raise AssertionError("it asked for a name")

    for name in ("getfqdn", "gethostbyaddr", "gethostname"):
        monkeypatch.setattr(socket, name, ask)
    body = b'{"inputs":"Hello","parameters":{"max_new_tokens":1}}'
    head = b"POST /generate HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    (answer,) = answers(await talk(gate.port, head % len(body) + body))
    assert answer.status == 200


OFFERS = (
    b"CONNECT other:80 HTTP/1.1\r\nHost: other:80\r\n\r\n",
    *(
        b"GET /generate HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n" % protocol
        for protocol in (b"websocket", b"tcp", b"h2c", b"TLS/1.0", b"websocket, h2c")
    ),
)


async def test_no_other_protocol_is_spoken_on_a_connection(gate: House) -> None:
    behind = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    for offer in OFFERS:
        for parts in ((offer + behind,), (offer, behind)):
            (answer,) = answers(await talk(gate.port, *parts))  # what stands behind it is never read
            assert answer.status in {400, 404, 405}
            assert answer.field("upgrade") is None


EXPECT = "Expect: 100-continue"
REFUSED_UNREAD = {
    "too long": (["Content-Type: application/json", "Content-Length: 200001"], 413, "body_too_large"),
    "compressed": (
        ["Content-Type: application/json", "Content-Length: 9", "Content-Encoding: gzip"], 415, "content_encoding",
    ),
    "a form": (["Content-Type: multipart/form-data; boundary=b", "Content-Length: 9"], 415, "content_encoding"),
    "too many headers": (
        ["Content-Type: application/json", "Content-Length: 9", *(f"X-{n}: 1" for n in range(20))], 431,
        "headers_too_large",
    ),
    "another route": (["Content-Type: application/json", "Content-Length: 9"], 404, "not_found"),
}  # fmt: skip


async def test_a_body_that_is_refused_unread_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LINGER_SECONDS", 0.01)
    async with house(SETTINGS) as gate:
        for what, (lines, status, reason) in REFUSED_UNREAD.items():
            path = "/none" if what == "another route" else "/generate"
            head = "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", EXPECT, *lines, "", ""])
            (answer,) = answers(await talk(gate.port, head.encode()))
            assert (what, answer.status, answer.reason) == (what, status, reason)
            assert answer.field("connection") == "close"


async def test_a_body_that_may_come_is_asked_for(gate: House) -> None:
    whole = request_bytes("/generate", NATIVE, EXPECT, "Connection: close")
    head, _, body = whole.partition(b"\r\n\r\n")
    async with raw(gate) as (reader, writer), asyncio.timeout(30):
        writer.write(head + b"\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        (answer,) = answers(await reader.read())
    assert answer.status == 200


async def test_the_admin_listener_has_the_same_bounds(gate: House) -> None:
    port = int(gate.admin.rpartition(":")[2])
    coded = (
        b"POST /admin/classify HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    )
    many = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + b"X: 1\r\n" * 20 + b"\r\n"
    fragment = b"GET /livez#/admin HTTP/1.1\r\nHost: x\r\n\r\n"
    for request, status in ((coded, 400), (many, 431), (fragment, 400)):
        (answer,) = answers(await talk(port, request))
        assert answer.status == status
        assert answer.json()["code"] == answer.reason
