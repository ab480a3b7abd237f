import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from llmshed.admission.reasons import Reason
from llmshed.config.addresses import Address
from llmshed.config.server import ServerSettings
from llmshed.engines.base import BodyError
from llmshed.errors import EngineError
from llmshed.gateway.door import listener as listener_module
from llmshed.gateway.door import server as server_module
from llmshed.gateway.door.intake import read_body
from llmshed.gateway.door.listener import Listener, open_listener

SETTINGS = ServerSettings(max_body_bytes=1000, body_timeout_seconds=0.2)
LOCAL = Address("127.0.0.1", 0)


def error_answer(reason: Reason, message: str) -> web.Response:
    return web.json_response({"reason": reason, "message": message}, status=reason.row.status)


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    try:
        body = await read_body(request, SETTINGS, asyncio.get_running_loop().time)
    except BodyError as error:
        response = error_answer(error.reason, str(error))
        response.force_close()
        return response
    return web.Response(body=body)


@asynccontextmanager
async def listening(
    handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]] = echo, address: Address = LOCAL
) -> AsyncIterator[Listener]:
    listener = await open_listener(address, handler, SETTINGS, error_answer, lambda _: None)
    try:
        yield listener
    finally:
        await listener.close(0)


async def talk(listener: Listener, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send the parts and return everything that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(listener.url.rpartition(":")[2]))
    for part in parts:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(pause)
    answer = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    await writer.wait_closed()
    return answer


def post(body: bytes, *more: bytes) -> bytes:
    lines = [b"POST / HTTP/1.1", b"Host: h", b"Connection: close", b"Content-Length: %d" % len(body), *more]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def test_an_answer_has_no_banner() -> None:
    async with listening() as listener:
        answer = await talk(listener, post(b"hello"))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"hello")
    assert b"server:" not in answer.lower()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00canary\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\ncanary\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\ncanary",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\ncanary",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: canary\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\ncanary : 1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ncanary",
        b"POST / HTTP/2.0\r\nHost: h\r\nContent-Length: 6\r\n\r\ncanary",
        b"GET / HTTP/0.9\r\nHost: h\r\n\r\n",
        b"GET /\r\n\r\n",
    ],
)
async def test_what_is_no_request_of_one_reading_is_a_json_400_without_an_echo(sent: bytes) -> None:
    async with listening() as listener:
        answer = await talk(listener, sent)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.0 400 ", b"HTTP/1.1 400 "))
    assert b"application/json" in head
    assert b'"malformed"' in body
    assert b"canary" not in answer
    assert b"server:" not in head.lower()
    assert b"aiohttp" not in answer


@pytest.mark.parametrize(
    "line", [b"x: " + b"v" * 20_000, b"\r\n".join(b"h%d: v" % n for n in range(200))], ids=["a long one", "many"]
)
async def test_headers_beyond_the_parser_are_a_json_431(line: bytes) -> None:
    async with listening() as listener:
        answer = await talk(listener, post(b"", line))
    assert b" 431 " in answer.splitlines()[0]
    assert b'"headers_too_large"' in answer


async def test_a_handler_that_crashes_is_a_json_500_that_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def crash(_: web.BaseRequest) -> web.StreamResponse:
        raise RuntimeError("canary")

    async with listening(crash) as listener:
        answer = await talk(listener, post(b""))
    assert b" 500 " in answer.splitlines()[0]
    assert b'"internal_error"' in answer
    assert b"canary" not in answer
    assert not caplog.records


async def test_chunked_bodies_are_counted_while_they_come() -> None:
    head = b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"190\r\n" + b"x" * 400 + b"\r\n"
    async with listening() as listener:
        assert (await talk(listener, head, chunk, chunk, b"0\r\n\r\n")).endswith(b"x" * 800)
        refused = await talk(listener, head, chunk, chunk, chunk, b"0\r\n\r\n")
    assert b" 413 " in refused.splitlines()[0]
    assert b'"body_too_large"' in refused


async def test_a_body_that_breaks_its_framing_is_malformed_and_closes() -> None:
    head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with listening() as listener:
        answer = await talk(listener, head, b"3\r\nabcXX\r\n")
    assert b" 400 " in answer.splitlines()[0]


async def test_a_body_that_comes_too_slowly_is_malformed_and_closes() -> None:
    head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n"
    async with listening() as listener:
        answer = await talk(listener, head + b"abc")
    assert b" 400 " in answer.splitlines()[0]
    assert b"too slowly" in answer
    assert b"connection: close" in answer.lower()


async def test_expect_is_answered_before_the_body_is_read() -> None:
    async with listening() as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(listener.url.rpartition(":")[2]))
        writer.write(post(b"", b"Expect: 100-continue").replace(b"Content-Length: 0", b"Content-Length: 5"))
        assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30) == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"hello")
        assert (await asyncio.wait_for(reader.read(), 30)).endswith(b"hello")
        writer.close()
        await writer.wait_closed()


async def test_headers_that_never_end_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "HEADER_TIMEOUT_SECONDS", 0.1)
    async with listening() as listener:
        assert await talk(listener, b"GET / HTTP/1.1\r\nHo") == b""


class Wire(asyncio.Transport):
    """A connection of which only the end is of interest."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = asyncio.Event()

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def close(self) -> None:
        self.closed.set()


async def test_headers_that_never_end_are_closed_though_they_came_with_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "HEADER_TIMEOUT_SECONDS", 0.05)
    async with listening() as listener:
        wire, connection = Wire(), listener.server()
        connection.connection_made(wire)
        connection.data_received(b"GET / HTTP/1.1\r\nHo")  # in the same turn of the loop, as uvloop does
        try:
            await asyncio.wait_for(wire.closed.wait(), 12)
        finally:
            connection.connection_lost(None)


async def test_a_slow_handler_is_not_a_slow_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "HEADER_TIMEOUT_SECONDS", 0.05)

    async def slow(_: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(0.2)
        return web.Response(text="done")

    async with listening(slow) as listener:
        assert (await talk(listener, post(b""))).endswith(b"done")


async def test_a_client_that_leaves_cancels_its_handler() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def wait_for_ever(_: web.BaseRequest) -> web.StreamResponse:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return web.Response()

    async with listening(wait_for_ever) as listener:
        _, writer = await asyncio.open_connection("127.0.0.1", int(listener.url.rpartition(":")[2]))
        writer.write(post(b""))
        await asyncio.wait_for(began.wait(), 30)
        writer.close()
        await writer.wait_closed()
        await asyncio.wait_for(ended.wait(), 30)


async def test_a_newcomer_beyond_the_descriptors_takes_the_place_of_an_idle_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener_module, "most_connections", lambda: 1)
    async with listening() as listener:
        reader, idle = await asyncio.open_connection("127.0.0.1", int(listener.url.rpartition(":")[2]))
        assert (await talk(listener, post(b"hello"))).endswith(b"hello")
        assert await asyncio.wait_for(reader.read(), 30) == b""
        idle.close()
        await idle.wait_closed()


async def test_a_newcomer_beyond_the_descriptors_is_closed_while_all_others_are_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener_module, "most_connections", lambda: 1)
    goes_on = asyncio.Event()

    async def wait(_: web.BaseRequest) -> web.StreamResponse:
        began.set()
        await goes_on.wait()
        return web.Response(text="served")

    began = asyncio.Event()
    async with listening(wait) as listener:
        working = asyncio.ensure_future(talk(listener, post(b"")))
        await asyncio.wait_for(began.wait(), 30)
        assert await talk(listener) == b""
        goes_on.set()
        assert (await working).endswith(b"served")


async def test_an_address_in_use_is_named() -> None:
    async with listening() as listener:
        taken = Address("127.0.0.1", int(listener.url.rpartition(":")[2]))
        with pytest.raises(EngineError, match=f"127.0.0.1:{taken.port}: cannot listen: the address is in use"):
            await open_listener(taken, echo, SETTINGS, error_answer, lambda _: None)


async def test_a_unix_socket_is_for_its_owner_and_group_and_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    async with listening(address=Address(unix_path=str(path))) as listener:
        assert listener.url == f"unix:{path}"
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o660  # noqa: PTH116 - tests may block
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(post(b"hello"))
        assert (await asyncio.wait_for(reader.read(), 30)).endswith(b"hello")
        writer.close()
        await writer.wait_closed()
    assert not path.exists()


async def test_a_socket_that_a_dead_process_left_is_replaced_and_a_live_one_kept(tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    address = Address(unix_path=str(path))
    async with listening(address=address):
        with pytest.raises(EngineError, match="in use"):
            await open_listener(address, echo, SETTINGS, error_answer, lambda _: None)
