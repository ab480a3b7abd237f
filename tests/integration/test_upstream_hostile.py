"""Replicas that break HTTP on purpose: the client gets one answer under the contract and not a byte of theirs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import orjson
import pytest

from fakes.engine import Conversation, Script, ScriptedEngine
from fakes.front import Front, with_front
from fakes.upstreams import Client, with_upstream
from fakes.wire import Answer, answers, talk
from llmshed.config.server import UpstreamSettings
from llmshed.gateway.relay.aiohttp_upstream import AiohttpUpstream
from llmshed.gateway.relay.plain_upstream import PlainUpstream
from llmshed.gateway.relay.upstream import UpstreamClient, read_whole

OK = b"HTTP/1.1 200 OK\r\n"
PLAIN = b"Content-Type: application/json\r\n"
BODY = b'{"generated_text":"canary"}'
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)


def _chunks(size: bytes, ending: bytes = b"\r\n0\r\n\r\n") -> bytes:
    return OK + PLAIN + CHUNKED + b"\r\n" + size + b"\r\n" + BODY + ending


HOSTILE: dict[str, bytes] = {
    "two lengths that differ": OK + PLAIN + LENGTH + b"Content-Length: 3\r\n\r\n" + BODY,
    "two lengths alike": OK + PLAIN + LENGTH + LENGTH + b"\r\n" + BODY,
    "two lengths in one field": OK + PLAIN + b"Content-Length: 27, 27\r\n\r\n" + BODY,
    "a length and a coding": OK + PLAIN + LENGTH + CHUNKED + b"\r\n" + CHUNKS,
    "a coding and a length": OK + PLAIN + CHUNKED + LENGTH + b"\r\n" + CHUNKS,
    "a coding twice": OK + PLAIN + CHUNKED + CHUNKED + b"\r\n" + CHUNKS,
    "a coding nobody asked for": OK + PLAIN + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKS,
    "a length of 2^64 + 27": OK + PLAIN + b"Content-Length: 18446744073709551643\r\n\r\n" + BODY,
    "a length beyond the end": OK + PLAIN + b"Content-Length: 99\r\n\r\n" + BODY,
    "a length that is no number": OK + PLAIN + b"Content-Length: 0x1b\r\n\r\n" + BODY,
    "a chunk size that is no number": _chunks(b"canary"),
    "a chunk size with a sign": _chunks(b"+1b"),
    "a chunk size beyond 64 bits": _chunks(b"f" * 17),
    "a chunk size beyond the end": _chunks(b"ffff"),
    "a chunk that is longer than told": _chunks(b"%x" % (len(BODY) - 1)),
    "chunks without an end": _chunks(b"%x" % len(BODY), b"\r\n"),
    "a field without a colon": OK + PLAIN + b"canary\r\n" + LENGTH + b"\r\n" + BODY,
    "a field name with a control": OK + b"X-\x01canary: 1\r\n" + LENGTH + b"\r\n" + BODY,
    "a field name with NUL": OK + b"X-\x00canary: 1\r\n" + LENGTH + b"\r\n" + BODY,
    "a field value with NUL": OK + b"X-A: can\x00ary\r\n" + LENGTH + b"\r\n" + BODY,
    "a field of a megabyte": OK + b"X-A: " + b"canary" * 200_000 + b"\r\n" + LENGTH + b"\r\n" + BODY,
    "a field name of a megabyte": OK + b"canary" * 200_000 + b": 1\r\n" + LENGTH + b"\r\n" + BODY,
    "five thousand fields": OK + b"".join(b"X-%d: canary\r\n" % n for n in range(5_000)) + LENGTH + b"\r\n" + BODY,
    "a status line of a megabyte": b"HTTP/1.1 200 " + b"canary" * 200_000 + b"\r\n" + LENGTH + b"\r\n" + BODY,
    "a status of two digits": b"HTTP/1.1 20 OK\r\n" + LENGTH + b"\r\n" + BODY,
    "a status of four digits": b"HTTP/1.1 2000 OK\r\n" + LENGTH + b"\r\n" + BODY,
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: canary\r\nConnection: Upgrade\r\n\r\n" + BODY,
    "no HTTP": b"220 canary ESMTP\r\n",
    "a version that is not spoken": b"HTTP/3.0 200 OK\r\n" + LENGTH + b"\r\n" + BODY,
    "half a head": OK + b"X-A: canary",
}


def _saying(raw: bytes) -> Script:
    async def script(conversation: Conversation) -> None:
        with contextlib.suppress(ConnectionError):  # nobody need read all of it
            await conversation.raw(raw)
        conversation.hang_up()

    return script


async def _ask(front: Front, path: str, *more: str) -> list[Answer]:
    """Ask as a client that reads bytes, over a connection of its own."""
    body = orjson.dumps({"inputs": "hello", "parameters": {"max_new_tokens": 50}})
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Connection: close", f"Content-Length: {len(body)}", *more]
    return answers(await talk(front.port, "\r\n".join(lines).encode() + b"\r\n\r\n" + body))


@pytest.mark.parametrize("path", ["/generate", "/generate_stream"])
@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
@with_front
async def test_an_answer_that_breaks_http_is_a_502_with_nothing_of_it(raw: bytes, path: str, front: Front) -> None:
    async with ScriptedEngine(_saying(raw)) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        (answer,) = await _ask(front, path)
        assert len(engine.asked) == 1  # the replica may have worked on it
    _is_upstream_error(answer)


def _is_upstream_error(answer: Answer) -> None:
    assert (answer.status, answer.reason, answer.field("x-should-retry")) == (502, "upstream_error", "false")
    assert "canary" not in str(answer)
    assert answer.json()["code"] == "upstream_error"


@contextlib.asynccontextmanager
async def _endless(head: bytes, item: bytes, most_bytes: int) -> AsyncIterator[ScriptedEngine]:
    """Run an engine that repeats itself until it is hung up on; it fails the test when that takes `most_bytes`."""
    sent = 0

    async def script(conversation: Conversation) -> None:
        nonlocal sent
        with contextlib.suppress(ConnectionError):
            await conversation.raw(head)
            while sent < most_bytes:
                await conversation.raw(item)
                sent += len(item)
        conversation.hang_up()

    async with ScriptedEngine(script) as engine:
        yield engine
    assert sent < most_bytes, "it was heard out"


ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "fields": (OK, b"X-A: canary\r\n" * 100),
    "one field": (OK + b"X-A: ", b"canary" * 200),
    "one status line": (b"HTTP/1.1 200 ", b"canary" * 200),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 50),
    "early hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: canary\r\n\r\n" * 25),
    "trailers": (OK + PLAIN + CHUNKED + b"\r\n" + CHUNKS[:-2], b"X-T: canary\r\n" * 100),
}


@pytest.mark.parametrize("head_and_item", ENDLESS.values(), ids=ENDLESS)
@with_front
async def test_an_answer_that_never_begins_or_ends_is_hung_up_on(
    head_and_item: tuple[bytes, bytes], front: Front
) -> None:
    async with _endless(*head_and_item, most_bytes=16 << 20) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        async with asyncio.timeout(30):
            (answer,) = await _ask(front, "/generate")
    _is_upstream_error(answer)


@with_front
async def test_an_interim_answer_is_passed_over(front: Front) -> None:
    raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: canary\r\n\r\n" + OK + PLAIN + LENGTH
    async with ScriptedEngine(_saying(raw + b"\r\n" + BODY)) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        (answer,) = await _ask(front, "/generate")
    assert (answer.status, answer.body) == (200, BODY)
    assert answer.field("link") is None


CONTROLS = [*range(1, 9), *range(11, 32), 127]


@with_front
async def test_no_control_character_of_a_field_is_ever_passed_on(front: Front) -> None:
    code = 0

    async def script(conversation: Conversation) -> None:
        await _saying(OK + PLAIN + LENGTH + b"X-A: can%cary\r\n\r\n" % code + BODY)(conversation)

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        for code in CONTROLS:  # noqa: B007 - the script reads it
            (answer,) = await _ask(front, "/generate")  # whose reader takes no control character
            assert answer.field("x-a") is None
            assert answer.status in {200, 502}


@with_front
async def test_a_reason_phrase_is_never_passed_on(front: Front) -> None:
    for phrase in (b"canary", b"canary\rSet-Cookie: a=1", b"canary\x00\x1b[2J"):
        answer = b"HTTP/1.1 200 " + phrase + b"\r\n" + PLAIN + LENGTH + b"\r\n" + BODY
        async with ScriptedEngine(_saying(answer)) as engine:
            front.urls["r1"] = front.urls["r2"] = engine.url
            body = b'{"inputs":"hello"}'
            head = b"POST /generate HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            raw = await talk(front.port, head % len(body) + body)
        assert b"canary" not in raw.replace(BODY, b"")
        assert b"cookie" not in raw.lower()


HOPS = ("Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "TE", "Trailer", "Upgrade", "X-First", "X-Second")


@with_front
async def test_fields_of_one_hop_end_there_in_both_directions(front: Front) -> None:
    listed = b"Connection: keep-alive, X-First\r\nConnection: x-second\r\n"
    fields = b"".join(b"%s: canary\r\n" % name.encode() for name in HOPS) + b"X-Seen: 1\r\n"

    async def script(conversation: Conversation) -> None:
        await conversation.raw(OK + PLAIN + LENGTH + listed + fields + b"\r\n" + BODY)

    sent = [f"{name}: canary" for name in HOPS] + [
        "Authorization: Bearer canary",
        "Cookie: canary",
        "X-Api-Key: canary",
    ]
    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        (answer,) = await _ask(front, "/generate", "Connection: x-first, X-Second", *sent)
        (asked,) = engine.asked
    assert answer.status == 200
    assert answer.field("x-seen") == "1"
    assert {name for name, _ in answer.fields}.isdisjoint(name.lower() for name in HOPS)
    assert "canary" not in str(asked.headers)
    assert not {name.lower() for name in HOPS} & set(asked.headers)
    assert "transfer-encoding" not in asked.headers
    assert int(asked.headers["content-length"]) == len(asked.body)


@with_upstream
async def test_trailers_of_one_answer_never_reach_the_next(upstream: UpstreamClient) -> None:
    async def script(conversation: Conversation) -> None:
        first = len(engine.asked) == 1
        trailed = CHUNKED + b"\r\n" + CHUNKS[:-2] + b"X-Canary: 1\r\nContent-Type: text/canary\r\n\r\n"
        await conversation.raw(OK + PLAIN + (trailed if first else LENGTH + b"\r\n" + BODY))

    async with ScriptedEngine(script) as engine:
        for _ in range(2):
            answer = await upstream.send(engine.url, b"{}", {})
            assert await read_whole(answer) == BODY
            assert "canary" not in str(answer.headers).lower()


@pytest.mark.parametrize("client", [AiohttpUpstream, PlainUpstream])
async def test_a_pooled_connection_has_no_timer_of_its_former_use(client: Client) -> None:
    async def script(conversation: Conversation) -> None:
        if len(engine.asked) == 2:
            await asyncio.sleep(0.15)
        await conversation.whole(BODY)

    async with ScriptedEngine(script) as engine, client(UpstreamSettings(connect_timeout_seconds=0.1)) as upstream:
        for _ in range(2):
            assert await read_whole(await upstream.send(engine.url, b"{}", {})) == BODY
        assert engine.connections == 1
