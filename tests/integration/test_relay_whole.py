"""Whole answers: what a client gets when the engine answers, refuses, fails, dies, is silent, or the client leaves."""

import asyncio
import logging

import pytest

from fakes.engine import Conversation, ScriptedEngine, free_port
from fakes.front import Front, with_front
from llmshed.admission.reasons import Reason
from llmshed.gateway.relay.timeouts import LaneTimeouts
from llmshed.observability.endings import EndedBy, Ending, Phase

ASK = {"inputs": "hello", "parameters": {"max_new_tokens": 50}}
ANSWER = b'{ "generated_text" : "\xc3\xa9" }'


async def answer(conversation: Conversation) -> None:
    await conversation.whole(ANSWER, headers="x-generated-tokens: 7\r\nx-queue-time: 3\r\nServer: tgi\r\n")


async def wait_for_leaving(conversation: Conversation) -> None:
    await conversation.peer_leaves()


@with_front
async def test_an_answer_comes_back_byte_by_byte_under_both_sets_of_headers(front: Front) -> None:
    async with ScriptedEngine(answer) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post("/generate", ASK, {"Authorization": "Bearer secret"})
        (asked,) = engine.asked
    assert (got.status, got.body) == (200, ANSWER)
    assert got.headers["x-queue-time"] == "3"
    assert got.headers["x-llmshed-replica"] == "r1"
    assert "tgi" not in got.headers.get("Server", "")
    assert "authorization" not in asked.headers
    assert asked.path == "/generate"
    assert b'"max_new_tokens":50' in asked.body
    outcome = await front.outcome()
    assert (outcome.ending, outcome.ended_by, outcome.phase) == (Ending.FINISHED, EndedBy.NOBODY, Phase.COMPLETE)
    assert (outcome.status, outcome.output_tokens, outcome.first_token_at) == (200, 7, None)
    assert front.driver.charged == 0
    assert front.heard.signs == [("answered", "r1")]


@with_front
async def test_only_a_well_formed_trace_goes_on(front: Front) -> None:
    good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with ScriptedEngine(answer) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        for trace in (good, "00-zz", "x" * 500):
            await front.post("/generate", ASK, {"traceparent": trace, "x-forwarded-for": "1.2.3.4"})
        assert [asked.headers.get("traceparent") for asked in engine.asked] == [good, None, None]
        assert all("x-forwarded-for" not in asked.headers for asked in engine.asked)


@pytest.mark.parametrize(
    ("told", "status", "reason", "blamed"),
    [
        ("429 Too Many Requests|overloaded", 429, "concurrency_limit", "busy"),
        ("422 Unprocessable Entity|validation", 422, "malformed", "answered"),
        ("424 Failed Dependency|generation", 502, "upstream_error", "status"),
        ("500 Internal Server Error|incomplete_generation", 502, "upstream_error", "status"),
        ("503 Service Unavailable|healthcheck", 502, "upstream_error", "status"),
        ("302 Found|x", 502, "upstream_error", "status"),
        ("401 Unauthorized|x", 502, "upstream_error", "status"),
        ("200 OK|generation", 502, "upstream_error", "status"),
        ("200 OK|overloaded", 429, "concurrency_limit", "busy"),
    ],
)
@with_front
async def test_what_the_engine_tells_is_put_under_the_contract(
    told: str, status: int, reason: str, blamed: str, front: Front
) -> None:
    line, _, error_type = told.partition("|")

    async def script(conversation: Conversation) -> None:
        await conversation.whole(f'{{"error":"engine says no","error_type":"{error_type}"}}'.encode(), line)

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post("/generate", ASK)
        assert len(engine.asked) == 1
    assert (got.status, got.reason) == (status, reason)
    assert ("Retry-After" in got.headers) == (status == 429)
    assert got.headers.get("x-should-retry") == (None if status == 429 else "false")
    assert "max_input_tokens" in got.json()["limits"]
    if status != 429:
        assert "engine says no" in got.json()["error"]
    outcome = await front.outcome()
    assert (outcome.ending, outcome.ended_by, outcome.phase) == (Ending.FAILED, EndedBy.UPSTREAM, Phase.PREFILL)
    assert outcome.reason == reason
    assert outcome.status == status
    assert front.driver.charged == 0
    assert front.heard.signs == [(blamed, "r1")]


@pytest.mark.parametrize("body", [b"", b"<html>Sign in</html>", b"null", b"[]", b"{}"])
@with_front
async def test_a_success_that_holds_no_answer_is_an_error(body: bytes, front: Front) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.whole(body)

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post("/generate", ASK)
    assert (got.status, got.reason, got.headers["x-should-retry"]) == (502, "upstream_error", "false")
    assert (await front.outcome()).ending == Ending.FAILED
    assert front.heard.signs == [("status", "r1")]


@pytest.mark.parametrize("way", ["hang_up", "reset"])
@with_front
async def test_an_engine_that_dies_with_the_request_is_not_asked_again(way: str, front: Front) -> None:
    async def script(conversation: Conversation) -> None:
        getattr(conversation, way)()

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post("/generate", ASK)
        assert len(engine.asked) == 1
    assert (got.status, got.reason, got.headers["x-should-retry"]) == (502, "upstream_error", "false")
    assert front.driver.charged == 0


@with_front
async def test_an_answer_that_breaks_off_is_an_error_and_no_success(front: Front) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + ANSWER)
        conversation.hang_up()

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post("/generate", ASK)
    assert (got.status, got.reason) == (502, "upstream_error")
    assert front.heard.signs == [("lost", "r1")]


@with_front
async def test_a_replica_that_takes_no_connection_is_replaced_by_another(front: Front) -> None:
    async with ScriptedEngine(answer) as engine:
        front.urls["r1"] = f"http://127.0.0.1:{free_port()}"
        front.urls["r2"] = engine.url
        got = await front.post("/generate", ASK)
    assert (got.status, got.headers["x-llmshed-replica"]) == (200, "r2")
    outcome = await front.outcome()
    assert outcome.redispatched
    assert outcome.verdict is not None
    assert outcome.verdict.replica == "r2"
    assert front.heard.signs == [("not_sent", "r1"), ("answered", "r2")]


@with_front
async def test_without_another_replica_the_client_is_told_so(front: Front) -> None:
    front.urls["r1"] = front.urls["r2"] = f"http://127.0.0.1:{free_port()}"
    got = await front.post("/generate", ASK)
    assert (got.status, got.reason) == (503, "no_replica")
    outcome = await front.outcome()
    assert (outcome.ending, outcome.reason, outcome.phase) == (Ending.REFUSED, Reason.NO_REPLICA, Phase.SENDING)
    assert front.driver.charged == 0


@with_front
async def test_a_replica_that_left_the_configuration_took_no_byte(front: Front) -> None:
    async with ScriptedEngine(answer) as engine:
        front.urls["r2"] = engine.url
        assert (await front.post("/generate", ASK)).headers["x-llmshed-replica"] == "r2"


@with_front
async def test_a_silent_engine_is_given_up_after_the_time_of_its_tokens(front: Front) -> None:
    front.timeouts = LaneTimeouts(first_byte_seconds=0.05, idle_seconds=20.0, token_seconds=0.001)
    async with ScriptedEngine(wait_for_leaving) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post("/generate", ASK)
        assert front.driver.charged == 1  # a closed socket is not a released engine
        async with asyncio.timeout(12):
            await engine.left.wait()
    assert (got.status, got.reason, got.headers["x-should-retry"]) == (504, "upstream_timeout", "false")
    assert "0.1 s" in got.json()["error"]
    assert " whole_answer_seconds=0.1." in got.json()["error"]
    assert got.json()["timeout"] == {"which": "whole_answer", "seconds": pytest.approx(0.1)}
    outcome = await front.outcome()
    assert (outcome.ending, outcome.ended_by, outcome.phase) == (Ending.FAILED, EndedBy.GATEWAY, Phase.PREFILL)
    assert front.heard.signs == [("first_byte_timeout", "r1")]


@with_front
async def test_a_client_that_leaves_takes_its_request_with_it(front: Front) -> None:
    async with ScriptedEngine(wait_for_leaving) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        await front.leave_after("/generate", ASK, lambda _: bool(engine.asked))
        outcome = await front.outcome()
        async with asyncio.timeout(12):
            await engine.left.wait()
    assert (outcome.ending, outcome.ended_by, outcome.phase) == (Ending.CANCELLED, EndedBy.CLIENT, Phase.PREFILL)
    assert outcome.status == 0
    assert front.heard.signs == []


@with_front
async def test_the_openai_routes_are_told_in_their_own_form(front: Front) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.whole(b'{"error":"Model is overloaded","error_type":"overloaded"}', "429 Too Many Requests")

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        got = await front.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]})
    assert got.status == 429
    assert got.json()["error"]["code"] == "concurrency_limit"
    assert got.json()["error"]["request_id"] == "req_1"


@with_front
async def test_a_shutdown_that_cannot_wait_longer_says_so(front: Front) -> None:
    async with ScriptedEngine(wait_for_leaving) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        asking = asyncio.ensure_future(front.post("/generate", ASK))
        async with asyncio.timeout(12):
            while not engine.asked:  # noqa: ASYNC110 - the engine is a script, not an event
                await asyncio.sleep(0.001)
        front.relay.break_off()
        got = await asking
    assert got.status == 502
    assert "shuts down" in got.json()["error"]


@with_front
async def test_nothing_of_prompt_or_answer_is_logged(front: Front, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with ScriptedEngine(answer) as engine:
            front.urls["r1"] = front.urls["r2"] = engine.url
            await front.post("/generate", {"inputs": "canary"})
    outcome = await front.outcome()
    assert "canary" not in repr(outcome)
    assert "canary" not in caplog.text
