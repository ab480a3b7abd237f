"""Connections of our own to replicas: when they are kept, used again, given up, and how a name becomes one."""

import asyncio

import pytest

from fakes.engine import Conversation, ScriptedEngine
from fakes.loops import on_both_loops
from fakes.turnstile import Turnstile
from llmshed.config.server import UpstreamSettings
from llmshed.gateway.relay import plain_upstream
from llmshed.gateway.relay.by_scheme import UpstreamByScheme
from llmshed.gateway.relay.plain_upstream import PlainUpstream
from llmshed.gateway.relay.upstream import LostError, NotSentError, ask, read_whole

HEADERS = {"Content-Type": "application/json"}


async def ok(conversation: Conversation) -> None:
    await conversation.whole(b'{"ok":true}')


async def until_left(engine: ScriptedEngine, number: int) -> None:
    """Wait until so many conversations have lost their client."""
    async with asyncio.timeout(12):
        while sum(one.reader.at_eof() for one in engine.conversations) < number:  # noqa: ASYNC110 - across a socket
            await asyncio.sleep(0.002)


@on_both_loops
async def test_a_connection_that_nobody_needs_is_given_up_in_time() -> None:
    settings = UpstreamSettings(pool_idle_seconds=0.05)
    async with ScriptedEngine(ok) as engine, PlainUpstream(settings) as upstream:
        await asyncio.gather(*(ask(upstream, engine.url, b"{}", 5.0) for _ in range(3)))
        await until_left(engine, 3)
        await ask(upstream, engine.url, b"{}", 5.0)
        assert engine.connections == 4


@on_both_loops
async def test_the_connection_that_was_used_last_goes_first() -> None:
    settings = UpstreamSettings(pool_idle_seconds=0.2)
    async with ScriptedEngine(ok) as engine, PlainUpstream(settings) as upstream:
        await asyncio.gather(*(ask(upstream, engine.url, b"{}", 5.0) for _ in range(3)))
        for _ in range(10):
            await asyncio.sleep(0.04)
            await ask(upstream, engine.url, b"{}", 5.0)
        await until_left(engine, 2)
        assert engine.connections == 3


@pytest.mark.parametrize("unasked", [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", b"\r\n", b"x"])
@on_both_loops
async def test_bytes_that_nobody_asked_for_end_their_connection(unasked: bytes) -> None:
    async with ScriptedEngine(ok) as engine, PlainUpstream(UpstreamSettings()) as upstream:
        await ask(upstream, engine.url, b"{}", 5.0)
        await engine.conversations[0].raw(unasked)
        await until_left(engine, 1)
        assert await ask(upstream, engine.url, b"{}", 5.0) == (200, b'{"ok":true}')
        assert engine.connections == 2


@on_both_loops
async def test_a_second_answer_to_one_request_reaches_nobody() -> None:
    async def twice(conversation: Conversation) -> None:
        first = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
        await conversation.raw(first + first.replace(b"{}", b"[]"))

    async with ScriptedEngine(twice) as engine, PlainUpstream(UpstreamSettings()) as upstream:
        for _ in range(3):
            assert await ask(upstream, engine.url, b"{}", 5.0) == (200, b"{}")
        assert engine.connections == 3


@on_both_loops
async def test_trailers_of_one_answer_are_no_headers_of_the_next() -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Trailer: 1\r\n\r\n")

    async with ScriptedEngine(script) as engine, PlainUpstream(UpstreamSettings()) as upstream:
        for _ in range(2):
            answer = await upstream.send(engine.url, b"{}", HEADERS)
            assert (await read_whole(answer), dict(answer.headers)) == (b"", {})
        assert engine.connections == 1


@on_both_loops
async def test_each_address_of_a_name_is_tried() -> None:
    async with ScriptedEngine(ok) as engine, PlainUpstream(UpstreamSettings()) as upstream:
        upstream._names._known["replica.example"] = float("inf"), ["127.0.0.7", "127.0.0.1"]
        url = engine.url.replace("127.0.0.1", "replica.example")
        assert await ask(upstream, url, b"{}", 5.0) == (200, b'{"ok":true}')
        assert engine.asked[0].headers["host"] == url.removeprefix("http://")


@on_both_loops
async def test_a_name_that_nobody_knows_means_not_sent() -> None:
    async with PlainUpstream(UpstreamSettings()) as upstream:
        with pytest.raises(NotSentError, match=r"^the replica cannot be reached: its name cannot be resolved$"):
            await upstream.send("http://replica.invalid:9/", b"{}", HEADERS)


@on_both_loops
async def test_a_host_that_does_not_answer_is_given_up_in_time() -> None:
    settings = UpstreamSettings(connect_timeout_seconds=0.1)
    async with ScriptedEngine(ok) as engine, Turnstile(engine.url) as turnstile, PlainUpstream(settings) as upstream:
        await turnstile.shut()
        with pytest.raises(NotSentError, match=r"^the replica cannot be reached: no connection came about in time$"):
            await upstream.send(turnstile.url, b"{}", HEADERS)
        assert upstream._pool._origins == {}


@on_both_loops
async def test_a_body_of_megabytes_arrives_whole_though_the_replica_reads_slowly() -> None:
    async with ScriptedEngine(ok) as engine, PlainUpstream(UpstreamSettings()) as upstream:
        body = bytes(range(256)) * 20_000
        assert await ask(upstream, engine.url, body, 10.0) == (200, b'{"ok":true}')
        assert engine.asked[0].body == body


@on_both_loops
async def test_no_header_ends_its_line() -> None:
    async with ScriptedEngine(ok) as engine, PlainUpstream(UpstreamSettings()) as upstream:
        for hostile in ("a\r\nX-B: 1", "a\nX-B: 1", "a\0"):
            with pytest.raises(ValueError, match="control character"):
                await upstream.send(engine.url, b"{}", {"X-A": hostile})
        assert engine.asked == []


@on_both_loops
async def test_a_client_that_is_closed_ends_what_runs() -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        await conversation.peer_leaves()

    async with ScriptedEngine(script) as engine, PlainUpstream(UpstreamSettings()) as upstream:
        answer = await upstream.send(engine.url, b"{}", HEADERS)
        await upstream.close()
        with pytest.raises(LostError):
            await answer.read()
        async with asyncio.timeout(12):
            await engine.left.wait()


def test_only_plain_http_is_spoken() -> None:
    with pytest.raises(ValueError, match="is not plain HTTP"):
        plain_upstream._target("https://replica.example/generate")


@on_both_loops
async def test_each_scheme_has_its_client() -> None:
    settings = UpstreamSettings(connect_timeout_seconds=0.1)
    async with ScriptedEngine(ok) as engine, UpstreamByScheme(settings) as upstream:
        assert await ask(upstream, engine.url, b"{}", 5.0) == (200, b'{"ok":true}')
        with pytest.raises(NotSentError):  # the engine waits for more of what it takes for a request
            await upstream.send(engine.url.replace("http:", "https:"), b"{}", HEADERS)
        assert len(engine.asked) == 1
