"""A request's own deadline at the relay: told as an error in every dialect, the engine let go, no replica blamed."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from fakes.engine import Conversation, Script, ScriptedEngine
from fakes.front import Front, with_front
from fakes.turns import turned_seconds
from llmshed.admission.reasons import Reason
from llmshed.engines.sse import EventScanner
from llmshed.gateway.relay import stream as relay_stream
from llmshed.observability.endings import EndedBy, Ending, Phase

CHAT = {"messages": [{"role": "user", "content": "hi"}]}
COMPLETION = {"prompt": "hi"}
NATIVE = {"inputs": "hello", "parameters": {"max_new_tokens": 50}}
TOKEN = b'data: {"index":1,"token":{"id":5,"text":" a","logprob":-0.5,"special":false},"generated_text":null}\n\n'
CHUNK = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]}\n\n'
TEXT = b'data: {"choices":[{"index":0,"text":"a","finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"

WHOLE = [("/generate", NATIVE), ("/v1/chat/completions", CHAT), ("/v1/completions", COMPLETION)]
STREAMS = [
    ("/generate_stream", NATIVE, TOKEN),
    ("/v1/chat/completions", {**CHAT, "stream": True}, CHUNK),
    ("/v1/completions", {**COMPLETION, "stream": True}, TEXT),
]
CLOSED_WITHIN_SECONDS = 0.5
"""The promise; what is measured begins when the client has read its answer, and the two sockets share one loop."""


def silent_after(*pieces: bytes) -> Script:
    """Answer with a stream's beginning and nothing more; without one not even with a status."""

    async def script(conversation: Conversation) -> None:
        with contextlib.suppress(ConnectionError):  # on a busy machine the deadline may come first
            if pieces:
                await conversation.open_stream()
            for piece in pieces:
                await conversation.piece(piece)
        await conversation.peer_leaves()

    return script


def told(answer: dict[str, Any]) -> tuple[str, str]:
    """Return reason and message of an error in either dialect."""
    error = answer["error"] if isinstance(answer["error"], dict) else answer
    return error["reason"], error.get("message", answer["error"])


async def assert_let_go(front: Front, engine: ScriptedEngine, phase: Phase) -> None:
    """Insist on one ending by the deadline, a closed socket, a freed ledger, and a replica that is not blamed."""
    assert await turned_seconds(engine.left.is_set) <= CLOSED_WITHIN_SECONDS
    outcome = await front.outcome()
    assert (outcome.ending, outcome.ended_by, outcome.phase) == (Ending.FAILED, EndedBy.DEADLINE, phase)
    assert outcome.reason is Reason.UPSTREAM_TIMEOUT
    assert front.heard.signs == []
    assert len(engine.asked) == 1
    assert front.driver.live == 0
    await freed(front)


async def freed(front: Front) -> None:
    """Wait for the end of the grace, in which the tokens are still held: a closed socket is no released engine."""
    async with asyncio.timeout(30):
        while front.driver.charged:  # noqa: ASYNC110 - the core's own timer is what is waited for
            await asyncio.sleep(0.002)


def assert_timed_out(answer: dict[str, Any], message: str) -> None:
    reason, text = told(answer)
    assert reason == "upstream_timeout"
    assert text.startswith(message)
    assert "silent" not in text
    body = answer["error"] if isinstance(answer["error"], dict) else answer
    which = "first_token" if "began" in message else "deadline"
    assert body["timeout"]["which"] == which
    assert "Limits: " in text
    assert f" {which}_seconds={body['timeout']['seconds']:g}." in text


@pytest.mark.parametrize(("path", "body"), WHOLE)
@with_front
async def test_a_whole_answer_that_is_late_is_504(path: str, body: object, front: Front) -> None:
    front.deadline_seconds = 0.1
    async with ScriptedEngine(silent_after()) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post(path, body)
        assert front.driver.charged == 1
        await assert_let_go(front, engine, Phase.PREFILL)
    assert (got.status, got.reason, got.headers["x-should-retry"]) == (504, "upstream_timeout", "false")
    assert "Retry-After" not in got.headers
    assert_timed_out(got.json(), "The request's own deadline of 0.1 s passed before its answer was complete")


@pytest.mark.parametrize(("path", "body", "piece"), STREAMS)
@pytest.mark.parametrize("status_sent", [False, True])
@with_front
async def test_a_stream_that_has_not_begun_in_time_is_504(
    *, path: str, body: object, piece: bytes, status_sent: bool, front: Front
) -> None:
    front.first_token_seconds, front.deadline_seconds = 0.1, 20.0
    async with ScriptedEngine(silent_after(*[b":\n\n", piece[:9]] * status_sent)) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post(path, body)
        await assert_let_go(front, engine, Phase.PREFILL)
    assert (got.status, got.reason, got.headers["x-should-retry"]) == (504, "upstream_timeout", "false")
    assert "Retry-After" not in got.headers
    assert_timed_out(got.json(), "The request's own deadline of 0.1 s passed before its answer began")


@pytest.mark.parametrize(("path", "body", "piece"), STREAMS)
@pytest.mark.parametrize("cut_short", [b"", b'data: {"ind'])
@with_front
async def test_a_stream_whose_end_is_late_ends_in_one_error_event(
    path: str, body: object, piece: bytes, cut_short: bytes, front: Front
) -> None:
    front.deadline_seconds = 0.15
    async with ScriptedEngine(silent_after(piece, *[cut_short] * bool(cut_short))) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post(path, body)
        await assert_let_go(front, engine, Phase.DECODE)
    assert got.status == 200
    assert got.body.startswith(piece + cut_short)
    assert b"[DONE]" not in got.body
    assert got.body.count(b'"error"') == 1
    *_, last = EventScanner().feed(got.body)
    assert last is not None
    assert_timed_out(orjson.loads(last), "The request's own deadline of 0.15 s passed before its answer was complete")


@with_front
async def test_a_stream_that_began_in_time_outlives_the_deadline_of_its_beginning(front: Front) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        for piece in (CHUNK, CHUNK, CHUNK, STOP, DONE):
            await conversation.piece(piece)
            await asyncio.sleep(0.06)
        await conversation.end_stream()

    front.first_token_seconds = 0.15
    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post("/v1/chat/completions", {**CHAT, "stream": True})
    assert got.body == 3 * CHUNK + STOP + DONE
    assert (await front.outcome()).ending is Ending.FINISHED


@pytest.mark.parametrize("how", ["deadline", "shutdown"])
@with_front
async def test_an_answer_that_was_told_to_its_end_is_not_late_while_the_engine_is_slow_to_close(
    how: str, front: Front
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relay_stream, "LINGER_SECONDS", 20.0)
        front.deadline_seconds = 0.15 if how == "deadline" else None
        async with ScriptedEngine(silent_after(CHUNK, STOP, DONE)) as engine:
            front.urls["r1"] = front.urls["r2"] = engine.url
            asking = asyncio.ensure_future(front.post("/v1/chat/completions", {**CHAT, "stream": True}))
            await asyncio.sleep(0.1)
            if how == "shutdown":
                front.relay.break_off()
            got = await asking
            assert await turned_seconds(engine.left.is_set) <= CLOSED_WITHIN_SECONDS
    assert got.body == CHUNK + STOP + DONE
    outcome = await front.outcome()
    assert (outcome.ending, outcome.ended_by, outcome.phase) == (Ending.FINISHED, EndedBy.NOBODY, Phase.COMPLETE)


@with_front
async def test_a_deadline_that_passed_before_anything_was_sent_holds_no_tokens_back(front: Front) -> None:
    front.deadline_seconds = -0.001
    async with ScriptedEngine(silent_after()) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post("/generate", NATIVE)
        assert engine.asked == []
    assert (got.status, got.reason) == (504, "upstream_timeout")
    assert front.driver.charged == 0
    assert (await front.outcome()).phase is Phase.SENDING


@pytest.mark.slow
@pytest.mark.parametrize("begun", [False, True])
@with_front
async def test_a_hundred_deadlines_at_once_leave_nothing_behind(*, begun: bool, front: Front) -> None:
    front.deadline_seconds = 0.5
    number = 100  # of the 128 seats behind this front
    async with ScriptedEngine(silent_after(*[CHUNK] * begun)) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        tasks_before = len(asyncio.all_tasks())
        body = {**CHAT, "stream": True}
        headers = {"Connection": "close"}
        answers = await asyncio.gather(*(front.post("/v1/chat/completions", body, headers) for _ in range(number)))
        await until(lambda: all(one.closed for one in engine.conversations))
        await freed(front)
        await until(lambda: len(asyncio.all_tasks()) <= tasks_before)
    assert all(b"upstream_timeout" in got.body for got in answers)
    assert (200 in {got.status for got in answers}) is begun
    assert {(outcome.ending, outcome.ended_by) for outcome in front.outcomes} == {(Ending.FAILED, EndedBy.DEADLINE)}
    assert len(front.outcomes) == number
    assert front.heard.signs == []


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what is waited for is on the other side of a socket
            await asyncio.sleep(0.002)
