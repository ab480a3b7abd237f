"""The upstream clients: what reaches a replica, what comes back, and what is known when it is lost."""

import asyncio
import random

import pytest

from fakes.engine import Conversation, Script, ScriptedEngine, free_port
from fakes.upstreams import with_upstream
from llmshed.gateway.relay.upstream import LostError, NotSentError, UpstreamClient, ask, read_whole

HEADERS = {"Content-Type": "application/json"}


async def ok(conversation: Conversation) -> None:
    await conversation.whole(b'{"ok":true}')


def answering(raw: bytes) -> Script:
    async def script(conversation: Conversation) -> None:
        await conversation.raw(raw)
        conversation.hang_up()

    return script


@with_upstream
async def test_body_and_headers_arrive_and_the_answer_comes_back(upstream: UpstreamClient) -> None:
    async with ScriptedEngine(ok) as engine:
        answer = await upstream.send(engine.url + "/generate", b'{"inputs":"a"}', HEADERS)
        assert (answer.status, await read_whole(answer)) == (200, b'{"ok":true}')
        assert await ask(upstream, engine.url + "/info", None, 5.0) == (200, b'{"ok":true}')
        post, get = engine.asked
    assert (post.method, post.path, post.body) == ("POST", "/generate", b'{"inputs":"a"}')
    assert post.headers["content-type"] == "application/json"
    assert post.headers["accept-encoding"] == "identity"
    assert not {"authorization", "cookie", "transfer-encoding"} & set(post.headers)
    assert (get.method, get.path, get.body) == ("GET", "/info", b"")


@with_upstream
async def test_a_connection_is_used_again(upstream: UpstreamClient) -> None:
    async with ScriptedEngine(ok) as engine:
        for _ in range(3):
            await ask(upstream, engine.url, b"{}", 5.0)
        assert engine.connections == 1


@with_upstream
async def test_hop_by_hop_headers_stay_on_their_hop(upstream: UpstreamClient) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.whole(
            b"{}", headers="Connection: keep-alive, X-Secret\r\nKeep-Alive: timeout=5\r\nX-Secret: 1\r\nX-Seen: 2\r\n"
        )

    async with ScriptedEngine(script) as engine:
        answer = await upstream.send(engine.url, b"{}", HEADERS)
        await read_whole(answer)
    assert set(answer.headers) == {"Content-Type", "Content-Length", "X-Seen"}


@with_upstream
async def test_a_refused_connection_means_not_sent(upstream: UpstreamClient) -> None:
    connected: list[bool] = []
    with pytest.raises(NotSentError, match=r"^the replica cannot be reached: connection refused$"):
        await upstream.send(f"http://127.0.0.1:{free_port()}/", b"{}", HEADERS, lambda: connected.append(True))
    assert connected == []


@with_upstream
async def test_an_idle_connection_that_closes_under_the_request_is_replaced(upstream: UpstreamClient) -> None:
    async with ScriptedEngine(ok) as engine:
        await ask(upstream, engine.url, b"first", 5.0)
        engine.conversations[0].hang_up()
        # The loop has not turned since: the pool takes the connection for a live one.
        assert await ask(upstream, engine.url, b"second", 5.0) == (200, b'{"ok":true}')
        assert [asked.body for asked in engine.asked] == [b"first", b"second"]
        assert engine.connections == 2


@pytest.mark.parametrize("way", ["hang_up", "reset"])
@pytest.mark.parametrize("reused", [False, True])
@with_upstream
async def test_a_request_that_was_read_is_never_sent_again(way: str, *, reused: bool, upstream: UpstreamClient) -> None:
    async def script(conversation: Conversation) -> None:
        if conversation.asked.body == b"first":
            await ok(conversation)
        else:
            getattr(conversation, way)()

    async with ScriptedEngine(script) as engine:
        if reused:
            await ask(upstream, engine.url, b"first", 5.0)
        with pytest.raises(LostError):
            await ask(upstream, engine.url, b"second", 5.0)
        await asyncio.sleep(0.05)
        assert [asked.body for asked in engine.asked].count(b"second") == 1
        assert engine.connections == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2",
        b"HTTP/9.9 wat\r\n\r\n",
        b"220 smtp.example ESMTP\r\n",
        b"",
    ],
)
@with_upstream
async def test_an_answer_of_ambiguous_or_broken_framing_counts_as_lost(raw: bytes, upstream: UpstreamClient) -> None:
    async with ScriptedEngine(answering(raw)) as engine:
        with pytest.raises(LostError) as lost:
            await ask(upstream, engine.url, b"{}", 5.0)
    # Clients are told this text: it holds neither the engine's address nor what it sent.
    assert "127.0.0.1" not in str(lost.value)
    assert not any(part in str(lost.value) for part in ("zz", "-2", "smtp", "wat", "Content-Length", "http:"))


@with_upstream
async def test_a_redirect_is_an_answer_like_any_other(upstream: UpstreamClient) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.whole(b"", "302 Found", "Location: http://169.254.169.254/\r\n")

    async with ScriptedEngine(script) as engine:
        assert await ask(upstream, engine.url, b"{}", 5.0) == (302, b"")
        assert len(engine.asked) == 1


@with_upstream
async def test_a_compressed_answer_is_not_touched(upstream: UpstreamClient) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.whole(b"\x1f\x8bnot really", headers="Content-Encoding: gzip\r\n")

    async with ScriptedEngine(script) as engine:
        assert await ask(upstream, engine.url, b"{}", 5.0) == (200, b"\x1f\x8bnot really")


@with_upstream
async def test_an_answer_that_is_too_long_to_hold_is_cut_off(upstream: UpstreamClient) -> None:
    async with ScriptedEngine(ok) as engine:
        answer = await upstream.send(engine.url, b"{}", HEADERS)
        with pytest.raises(LostError, match="longer than the 5 bytes"):
            await read_whole(answer, 5)


@with_upstream
async def test_more_streams_than_any_pool_default_run_at_once(upstream: UpstreamClient) -> None:
    everyone = asyncio.Event()

    async def script(conversation: Conversation) -> None:
        if len(engine.asked) == 150:
            everyone.set()
        await everyone.wait()
        await ok(conversation)

    async with ScriptedEngine(script) as engine:
        answers = await asyncio.gather(*(ask(upstream, engine.url, b"{}", 60.0) for _ in range(150)))
    assert {status for status, _ in answers} == {200}


@with_upstream
async def test_closing_an_answer_is_noticed_by_the_engine(upstream: UpstreamClient) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        await conversation.piece(b"data: 1\n\n")
        await conversation.peer_leaves()

    async with ScriptedEngine(script) as engine:
        answer = await upstream.send(engine.url, b"{}", HEADERS)
        assert await answer.read() == b"data: 1\n\n"
        answer.close()
        async with asyncio.timeout(12):
            await engine.left.wait()
        with pytest.raises(LostError):
            await answer.read()


@with_upstream
async def test_cancelling_a_send_closes_its_socket(upstream: UpstreamClient) -> None:
    arrived = asyncio.Event()

    async def script(conversation: Conversation) -> None:
        arrived.set()
        await conversation.peer_leaves()

    async with ScriptedEngine(script) as engine:
        sending = asyncio.ensure_future(upstream.send(engine.url, b"{}", HEADERS))
        await arrived.wait()
        sending.cancel()
        await asyncio.wait([sending])
        async with asyncio.timeout(12):
            await engine.left.wait()


@with_upstream
async def test_a_reader_that_pauses_stops_the_engine(upstream: UpstreamClient) -> None:
    sent = 0

    async def script(conversation: Conversation) -> None:
        nonlocal sent
        await conversation.open_stream()
        for _ in range(2_000):
            await conversation.piece(b"x" * 65_536)
            sent += 65_536

    async with ScriptedEngine(script) as engine:
        answer = await upstream.send(engine.url, b"{}", HEADERS)
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.1)
        assert sent < 2_000 * 65_536 / 4
        answer.close()


@with_upstream
async def test_a_slow_answer_to_a_question_ends_in_a_named_error(upstream: UpstreamClient) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.peer_leaves()

    async with ScriptedEngine(script) as engine:
        with pytest.raises(LostError, match=r"did not answer within 0\.05 s"):
            await ask(upstream, engine.url + "/health", None, 0.05)


@pytest.mark.slow
@with_upstream
async def test_an_engine_that_closes_idle_connections_at_any_moment_fails_nobody(upstream: UpstreamClient) -> None:
    draw = random.Random(20)  # noqa: S311 - a seed, so that a failure can be repeated
    loop = asyncio.get_running_loop()

    async def script(conversation: Conversation) -> None:
        await ok(conversation)
        loop.call_later(draw.random() * 0.01, conversation.hang_up_if_idle)

    async def client() -> None:
        for _ in range(250):
            assert (await ask(upstream, engine.url, b"{}", 10.0))[0] == 200
            await asyncio.sleep(draw.random() * 0.01)

    async with ScriptedEngine(script) as engine:
        await asyncio.gather(*(client() for _ in range(8)))
        assert len(engine.asked) == 2_000
        assert 50 < engine.connections < 2_000
