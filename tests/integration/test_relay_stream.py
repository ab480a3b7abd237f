"""Streams: bytes go on unchanged, early failures are HTTP errors, late ones an event, and every end is noticed."""

import asyncio

import orjson
import pytest

from fakes.engine import Conversation, Script, ScriptedEngine
from fakes.front import Front, with_front
from llmshed.engines.sse import EventScanner
from llmshed.gateway.relay import stream as relay_stream
from llmshed.gateway.relay.timeouts import LaneTimeouts
from llmshed.observability.endings import EndedBy, Ending, Phase

NATIVE = {"inputs": "hello"}
CHAT = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
NATIVE_PATH = "/generate_stream"
CHAT_PATH = "/v1/chat/completions"

TOKEN = b'data: {"index":1,"token":{"id":5,"text":" a","logprob":-0.5,"special":false},"generated_text":null}\n\n'
LAST = (
    b'data: {"index":2,"token":{"id":2,"text":"","logprob":0.0,"special":true},"generated_text":" a",'
    b'"details":{"finish_reason":"eos_token","generated_tokens":2}}\n\n'
)
CHUNK = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"\xc3\xa9"},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
COMMENT = b":\n\n"
OVERLOADED = b'data: {"error":"Model is overloaded","error_type":"overloaded"}\n\n'
CHAT_OVERLOADED = b'data: {"error":{"message":"Model is overloaded","http_status_code":422}}\n\n'
INVALID = b'data: {"error":"Input validation error: no","error_type":"validation"}\n\n'
BROKEN = b'data: {"error":"Request failed during generation: oom","error_type":"generation"}\n\n'


def streaming(*pieces: bytes, end: str = "end") -> Script:
    """Send the pieces as they are and end in order, by hanging up, by a reset, or not at all."""

    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        for piece in pieces:
            await conversation.piece(piece)
        if end == "end":
            await conversation.end_stream()
        elif end == "stay":
            await conversation.peer_leaves()
        else:
            getattr(conversation, end)()

    return script


async def until(condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(12):
        while not condition():  # noqa: ASYNC110 - what is waited for is on the other side of a socket
            await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    ("path", "body", "pieces", "tokens", "finish"),
    [
        (NATIVE_PATH, NATIVE, [TOKEN, LAST], 2, "eos_token"),
        (NATIVE_PATH, NATIVE, [TOKEN[:9], TOKEN[9:] + LAST[:60], LAST[60:]], 2, "eos_token"),
        (CHAT_PATH, CHAT, [CHUNK, CHUNK, STOP, DONE], 3, "stop"),
        (CHAT_PATH, CHAT, [CHUNK + STOP + DONE], 2, "stop"),
        (CHAT_PATH, CHAT, [CHUNK[:70], CHUNK[70:71], CHUNK[71:] + STOP, DONE[:7], DONE[7:]], 2, "stop"),
        (CHAT_PATH, CHAT, [CHUNK, COMMENT, STOP, COMMENT, DONE], 2, "stop"),
    ],
)
@with_front
async def test_a_stream_arrives_byte_by_byte(
    path: str, body: object, pieces: list[bytes], tokens: int, finish: str, front: Front
) -> None:
    async with ScriptedEngine(streaming(*pieces)) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post(path, body)
    assert (got.status, got.body) == (200, b"".join(pieces))
    assert got.headers["Content-Type"] == "text/event-stream"
    assert got.headers["Cache-Control"] == "no-cache"
    assert got.headers["x-llmshed-replica"] == "r1"
    outcome = await front.outcome()
    assert (outcome.ending, outcome.ended_by, outcome.phase) == (Ending.FINISHED, EndedBy.NOBODY, Phase.COMPLETE)
    assert (outcome.output_tokens, outcome.finish_reason) == (tokens, finish)
    assert outcome.sent_at is not None
    assert outcome.first_token_at is not None
    assert outcome.ended_at is not None
    assert outcome.sent_at <= outcome.first_token_at <= outcome.ended_at
    assert front.driver.charged == 0


@with_front
async def test_comments_before_the_first_event_do_not_commit_the_answer(front: Front) -> None:
    async with ScriptedEngine(streaming(COMMENT, b": ", b"alive\n", b"\n", CHUNK, STOP, DONE)) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post(CHAT_PATH, CHAT)
    assert got.body == CHUNK + STOP + DONE


@with_front
async def test_a_connection_is_kept_after_a_whole_stream(front: Front) -> None:
    async with ScriptedEngine(streaming(CHUNK, STOP, DONE)) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        for _ in range(3):
            await front.post(CHAT_PATH, CHAT)
        assert engine.connections == 1


@pytest.mark.parametrize(
    ("path", "body", "pieces", "status", "reason"),
    [
        (NATIVE_PATH, NATIVE, [OVERLOADED], 429, "concurrency_limit"),
        (NATIVE_PATH, NATIVE, [COMMENT, OVERLOADED[:20], OVERLOADED[20:]], 429, "concurrency_limit"),
        (NATIVE_PATH, NATIVE, [INVALID], 422, "malformed"),
        (NATIVE_PATH, NATIVE, [BROKEN], 502, "upstream_error"),
        (NATIVE_PATH, NATIVE, [TOKEN + BROKEN], 502, "upstream_error"),
        (NATIVE_PATH, NATIVE, [], 502, "upstream_error"),
        (NATIVE_PATH, NATIVE, [COMMENT], 502, "upstream_error"),
        (CHAT_PATH, CHAT, [CHAT_OVERLOADED, DONE], 429, "concurrency_limit"),
        (CHAT_PATH, CHAT, [CHAT_OVERLOADED + DONE], 429, "concurrency_limit"),
    ],
)
@with_front
async def test_a_failure_before_the_first_event_is_an_http_error(
    path: str, body: object, pieces: list[bytes], status: int, reason: str, front: Front
) -> None:
    async with ScriptedEngine(streaming(*pieces)) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post(path, body)
        assert len(engine.asked) == 1
    assert (got.status, got.reason) == (status, reason)
    assert got.headers["Content-Type"] == "application/json"
    assert (await front.outcome()).ending is Ending.FAILED
    assert front.driver.charged == 0


@pytest.mark.parametrize("end", ["hang_up", "reset"])
@with_front
async def test_an_engine_that_dies_before_its_first_event_is_an_http_error(end: str, front: Front) -> None:
    async with ScriptedEngine(streaming(COMMENT, end=end)) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post(NATIVE_PATH, NATIVE)
        assert len(engine.asked) == 1
    assert (got.status, got.reason) == (502, "upstream_error")


@pytest.mark.parametrize("end", ["end", "hang_up", "reset"])
@pytest.mark.parametrize(
    ("path", "body", "pieces"),
    [(NATIVE_PATH, NATIVE, [TOKEN]), (CHAT_PATH, CHAT, [CHUNK]), (CHAT_PATH, CHAT, [CHUNK, STOP])],
)
@with_front
async def test_a_stream_that_breaks_off_ends_in_one_error_event(
    end: str, path: str, body: object, pieces: list[bytes], front: Front
) -> None:
    sent = b"".join(pieces)
    first = asyncio.Event()

    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        for piece in pieces:
            await conversation.piece(piece)
        await first.wait()
        await (conversation.end_stream() if end == "end" else asyncio.sleep(0))
        if end != "end":
            getattr(conversation, end)()

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        asking = asyncio.ensure_future(front.post(path, body))
        await until(lambda: front.outcomes and front.outcomes[0].first_token_at is not None)
        await asyncio.sleep(0.02)
        first.set()
        got = await asking
        assert len(engine.asked) == 1
    assert got.status == 200
    assert got.body.startswith(sent + b'data: {"error":')
    assert got.body.endswith(b"}\n\n")
    assert got.body.count(b"data:") == len(pieces) + 1
    assert b"upstream_error" in got.body
    assert b"[DONE]" not in got.body
    outcome = await front.outcome()
    assert (outcome.ending, outcome.ended_by, outcome.phase) == (Ending.FAILED, EndedBy.UPSTREAM, Phase.DECODE)
    assert outcome.output_tokens == len(pieces)
    assert front.driver.charged == 0
    assert front.heard.signs == [("stream" if end == "end" else "lost", "r1")]


@pytest.mark.parametrize(
    ("path", "body", "pieces", "relayed"),
    [
        (NATIVE_PATH, NATIVE, [TOKEN, BROKEN], TOKEN + BROKEN),
        (CHAT_PATH, CHAT, [CHUNK, CHAT_OVERLOADED, DONE], CHUNK + CHAT_OVERLOADED),
        (CHAT_PATH, CHAT, [CHUNK, CHAT_OVERLOADED + DONE], CHUNK + CHAT_OVERLOADED),
    ],
)
@with_front
async def test_the_engines_own_error_event_is_passed_on_and_is_the_last(
    path: str, body: object, pieces: list[bytes], relayed: bytes, front: Front
) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        await conversation.piece(pieces[0])
        await until(lambda: front.outcomes[0].first_token_at is not None)
        for piece in pieces[1:]:
            await conversation.piece(piece)
        await conversation.end_stream()

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post(path, body)
    assert (got.status, got.body) == (200, relayed)
    assert (await front.outcome()).ending is Ending.FAILED


@with_front
async def test_an_engine_that_does_not_close_after_its_last_event_is_not_waited_for(front: Front) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relay_stream, "LINGER_SECONDS", 0.05)
        async with ScriptedEngine(streaming(CHUNK, STOP, DONE, end="stay")) as engine:
            front.urls["r1"] = front.urls["r2"] = engine.url
            got = await front.post(CHAT_PATH, CHAT)
            async with asyncio.timeout(12):
                await engine.left.wait()
    assert got.body == CHUNK + STOP + DONE
    assert (await front.outcome()).ending is Ending.FINISHED


@with_front
async def test_an_engine_that_only_sends_comments_is_given_up_with_a_clean_error(front: Front) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        await conversation.pieces_until_left(COMMENT, every_seconds=0.01)

    front.timeouts = LaneTimeouts(0.1, 20.0, 0.1)
    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post(CHAT_PATH, CHAT)
    assert (got.status, got.reason) == (504, "upstream_timeout")
    outcome = await front.outcome()
    assert (outcome.ending, outcome.ended_by, outcome.phase) == (Ending.FAILED, EndedBy.GATEWAY, Phase.PREFILL)


@pytest.mark.parametrize(
    "unsaid", [COMMENT, COMMENT[1:], b"\n", b": data: none\n\n", b"data: never ended", b"data: unended\n"]
)
@with_front
async def test_a_stream_that_falls_silent_ends_in_an_error_event_though_comments_go_on(
    unsaid: bytes, front: Front
) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        await conversation.piece(CHUNK)
        await conversation.pieces_until_left(unsaid, every_seconds=0.01)

    front.timeouts = LaneTimeouts(20.0, 0.15, 0.1)
    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post(CHAT_PATH, CHAT)
    assert got.body.startswith(CHUNK + unsaid)
    *_, told = EventScanner().feed(got.body)
    assert told is not None
    error = orjson.loads(told)["error"]
    assert (error["code"], error["timeout"]) == ("upstream_timeout", {"which": "idle", "seconds": 0.15})
    assert " idle_seconds=0.15." in error["message"]
    outcome = await front.outcome()
    assert (outcome.ended_by, outcome.phase) == (EndedBy.GATEWAY, Phase.DECODE)
    assert front.heard.signs == [("idle_timeout", "r1")]


@with_front
async def test_a_slow_stream_lives_as_long_as_no_single_gap_is_too_long(front: Front) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        for piece in (CHUNK, CHUNK, CHUNK, CHUNK, STOP, DONE):
            await asyncio.sleep(0.1)
            await conversation.piece(piece)
        await conversation.end_stream()

    front.timeouts = LaneTimeouts(0.4, 0.4, 0.001)
    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post(CHAT_PATH, CHAT)
    assert got.body == 4 * CHUNK + STOP + DONE


@pytest.mark.parametrize("seen", [b"", CHUNK])
@with_front
async def test_a_client_that_leaves_a_stream_takes_it_with_it(seen: bytes, front: Front) -> None:
    pieces = [seen] if seen else []
    async with ScriptedEngine(streaming(*pieces, end="stay")) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        await front.leave_after(CHAT_PATH, CHAT, lambda got: seen in got and bool(engine.asked))
        outcome = await front.outcome()
        async with asyncio.timeout(12):
            await engine.left.wait()
    assert (outcome.ending, outcome.ended_by) == (Ending.CANCELLED, EndedBy.CLIENT)
    assert outcome.phase is (Phase.DECODE if seen else Phase.PREFILL)
    assert outcome.reason is None
    assert front.driver.live == 0


@with_front
async def test_a_client_that_never_reads_counts_as_gone(front: Front) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        await conversation.pieces_until_left(CHUNK * 1_000, every_seconds=0.0)

    front.write_stall_seconds = 0.2
    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        _, writer = await asyncio.open_connection("127.0.0.1", front.port)
        content = b'{"messages":[{"role":"user","content":"hi"}],"stream":true}'
        writer.write(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (CHAT_PATH.encode(), len(content)))
        writer.write(content)
        outcome = await front.outcome()
        async with asyncio.timeout(12):
            await engine.left.wait()
        writer.close()
    assert (outcome.ending, outcome.ended_by, outcome.phase) == (Ending.CANCELLED, EndedBy.CLIENT, Phase.DECODE)


@with_front
async def test_a_shutdown_that_cannot_wait_longer_ends_a_stream_with_an_event(front: Front) -> None:
    async with ScriptedEngine(streaming(CHUNK, end="stay")) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        asking = asyncio.ensure_future(front.post(CHAT_PATH, CHAT))
        await until(lambda: front.outcomes and front.outcomes[0].first_token_at is not None)
        await asyncio.sleep(0.02)
        front.relay.break_off()
        got = await asking
    assert got.body.startswith(CHUNK + b'data: {"error":')
    assert b"shuts down" in got.body
    assert (await front.outcome()).ended_by is EndedBy.GATEWAY


@with_front
async def test_hundreds_of_clients_that_leave_at_any_moment_leave_nothing_behind(front: Front) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        for _ in range(20):
            await asyncio.sleep(0.002)
            await conversation.piece(CHUNK)
        await conversation.piece(STOP + DONE)
        await conversation.end_stream()

    async def leave(after: float) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", front.port)
        content = b'{"messages":[{"role":"user","content":"hi"}],"stream":true}'
        writer.write(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (CHAT_PATH.encode(), len(content)))
        writer.write(content)
        await asyncio.sleep(after)
        writer.transport.abort()

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        tasks_before = len(asyncio.all_tasks())
        steady = asyncio.ensure_future(front.post(CHAT_PATH, CHAT))
        for start in range(0, 200, 40):
            await asyncio.gather(*(leave(0.0005 * number) for number in range(start, start + 40)))
        assert (await steady).body == 20 * CHUNK + STOP + DONE
        await until(lambda: front.driver.live == 0 and front.driver.charged == 0)
        assert {outcome.ending for outcome in front.outcomes} <= {Ending.FINISHED, Ending.CANCELLED}
        await until(lambda: len(asyncio.all_tasks()) <= tasks_before + 1)
