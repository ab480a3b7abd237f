"""Streams to clients that read slowly, late or in an older HTTP: every byte once, and the engine waits with them."""

import asyncio
import socket
from itertools import count

import pytest

from fakes.engine import Conversation, ScriptedEngine
from fakes.front import Front, with_front
from llmshed.observability.endings import EndedBy, Ending

BODY = b'{"messages":[{"role":"user","content":"hi"}],"stream":true}'
DONE = b"data: [DONE]\n\n"


def event(number: int, padding: int = 0) -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{"content":"%d %b"}}]}\n\n' % (number, b"x" * padding)


async def asked(front: Front, version: bytes = b"1.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask for a stream and read nothing of it yet; the kernel may hold little for this client."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    sock.settimeout(0)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", front.port))
    reader, writer = await asyncio.open_connection(sock=sock)
    head = b"POST /v1/chat/completions HTTP/%b\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    writer.write(head % (version, len(BODY)) + BODY)
    return reader, writer


def unchunked(body: bytes) -> bytes:
    """Undo chunked framing, by hand and strictly."""
    parts: list[bytes] = []
    at = 0
    while True:
        size_ends = body.index(b"\r\n", at)
        begins, length = size_ends + 2, int(body[at:size_ends], 16)
        if not length:
            assert body[begins:] == b"\r\n"
            return b"".join(parts)
        parts.append(body[begins : begins + length])
        at = begins + length + 2
        assert body[at - 2 : at] == b"\r\n"


async def read_on(reader: asyncio.StreamReader, pause_seconds: float = 0.0) -> bytes:
    """Read up to the end of a chunked body, with a pause after each piece."""
    got = bytearray()
    while not got.endswith(b"\r\n0\r\n\r\n"):
        got += await reader.read(700_000)
        await asyncio.sleep(pause_seconds)
    return unchunked(bytes(got))


@with_front
async def test_a_client_that_reads_late_gets_every_byte_and_the_engine_waits_meanwhile(front: Front) -> None:
    pieces = [event(number, 60_000) for number in range(400)]
    sent = 0

    async def script(conversation: Conversation) -> None:
        nonlocal sent
        await conversation.open_stream()
        for piece in pieces:
            await conversation.piece(piece)
            sent += 1
        await conversation.piece(DONE)
        await conversation.end_stream()

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        reader, writer = await asked(front)
        before = -1
        while before != sent:  # until everything between has filled up
            before = sent
            await asyncio.sleep(0.05)
        assert sent < len(pieces)
        assert front.driver.charged == 1
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"Transfer-Encoding: chunked" in head
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_000_000)
        assert await read_on(reader) == b"".join(pieces) + DONE
        writer.close()
        assert (await front.outcome()).ending is Ending.FINISHED


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@with_front
async def test_an_older_client_gets_the_stream_without_chunks_and_its_end_by_the_close(
    version: bytes, front: Front
) -> None:
    pieces = [event(1), event(2)[:20], event(2)[20:], event(3), DONE]

    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        for piece in pieces:
            await conversation.piece(piece)
            await asyncio.sleep(0.002)
        await conversation.end_stream()

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        reader, writer = await asked(front, version)
        head = await reader.readuntil(b"\r\n\r\n")
        got = await reader.read() if version == b"1.0" else await reader.readuntil(b"\r\n0\r\n\r\n")
        writer.close()
    assert (b"chunked" in head) is (version == b"1.1")
    assert (got if version == b"1.0" else unchunked(got)) == b"".join(pieces)


@with_front
async def test_a_client_that_leaves_while_the_engine_waits_for_it_takes_the_stream_with_it(front: Front) -> None:
    numbers = count()

    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        await conversation.pieces_until_left(event(next(numbers), 60_000), every_seconds=0.0)

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        _, writer = await asked(front)
        async with asyncio.timeout(12):
            while not engine.conversations:  # noqa: ASYNC110 - across a socket
                await asyncio.sleep(0.002)
        await asyncio.sleep(0.1)
        writer.transport.abort()
        async with asyncio.timeout(12):
            await engine.left.wait()
        outcome = await front.outcome()
    assert (outcome.ending, outcome.ended_by) == (Ending.CANCELLED, EndedBy.CLIENT)


@with_front
async def test_a_reader_that_is_slow_but_reads_is_not_given_up(front: Front) -> None:
    front.write_stall_seconds = 0.3
    pieces = [event(number, 60_000) for number in range(100)]

    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        for piece in pieces:
            await conversation.piece(piece)
        await conversation.piece(DONE)
        await conversation.end_stream()

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        reader, writer = await asked(front)
        await reader.readuntil(b"\r\n\r\n")
        assert await read_on(reader, 0.005) == b"".join(pieces) + DONE
        writer.close()
