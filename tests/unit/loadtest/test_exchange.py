"""One request against canned answers: every ending has its outcome, its word and its tokens."""

import asyncio

import orjson
import pytest

from fakes.canned import Held, canned, last, stream, token, whole
from fakes.replaying import client_of, embedded_prompts
from llmshed.clock import SystemClock
from llmshed.engines.registry import readable_engine
from llmshed.errors import EngineError
from llmshed.loadtest.client import Client
from llmshed.loadtest.replies import Reply
from llmshed.loadtest.wire import TextWire
from llmshed.workload.asks import Ask, Outcome

ASK = Ask("a", 20, 8, runs_to_ceiling=False, lane=None)
OVERLOADED = orjson.dumps({"error": "Model is overloaded", "error_type": "overloaded"})


async def asked(*answers: bytes, chat: bool = False) -> Reply:
    async with canned(*answers) as server, client_of(server.url, chat=chat) as client:
        return await client.send(ASK)


async def test_tokens_are_counted_and_stamped_and_the_first_is_told_once() -> None:
    told: list[str] = []
    async with canned(stream(token(), token(2), last(3))) as server, client_of(server.url, key="k") as client:
        reply = await client.send(ASK, on_first_token=lambda: told.append("first"))
    sample = reply.sample
    assert (sample.outcome, sample.output_tokens, len(sample.token_times), sample.status) == (
        Outcome.FINISHED,
        3,
        3,
        200,
    )
    assert sample.planned_at <= sample.sent_at <= sample.token_times[0] <= sample.token_times[-1] <= sample.finished_at
    assert told == ["first"]
    assert "authorization: bearer k" in server.heads[0]
    assert orjson.loads(server.bodies[0])["parameters"]["max_new_tokens"] == 8


async def test_an_engine_that_closes_after_a_stream_gets_a_connection_for_each_request() -> None:
    engine = readable_engine("llamacpp")
    async with canned(stream(), stream()) as server:
        wire = TextWire(engine, "tiny")
        async with Client(server.url, engine, wire, embedded_prompts(), SystemClock()) as client:
            await client.send(ASK)
    assert "connection: close" in server.heads[0]
    async with canned(stream(token(), last(1))) as server, client_of(server.url) as client:
        await client.send(ASK)
    assert "connection: close" not in server.heads[0]


@pytest.mark.parametrize(
    ("answer", "outcome", "reason", "tokens"),
    [
        (whole(429, OVERLOADED), Outcome.REFUSED, "overloaded", 0),
        (whole(429, OVERLOADED, "x-llmshed-reason: queue_full"), Outcome.REFUSED, "queue_full", 0),
        (whole(413, b"{}", "x-llmshed-reason: lane_limit"), Outcome.REFUSED, "lane_limit", 0),
        (whole(503, b"away"), Outcome.REFUSED, "generation", 0),
        (whole(422, b'{"error":"no","error_type":"validation"}'), Outcome.FAILED, "validation", 0),
        (whole(500, b""), Outcome.FAILED, "generation", 0),
        (whole(307, b"", "Location: http://127.0.0.1:1/"), Outcome.FAILED, "generation", 0),  # followed by nobody
        (stream(orjson.loads(OVERLOADED)), Outcome.REFUSED, "overloaded", 0),
        (stream(token(), {"error": "gone", "error_type": "generation"}), Outcome.FAILED, "generation", 1),
        (stream(token(), token(2)), Outcome.FAILED, "stream_cut", 2),
        (stream(token(), token(2), cut=True), Outcome.FAILED, "connection_lost", 2),
        (stream(), Outcome.FAILED, "stream_cut", 0),
        (whole(200, b"<html>"), Outcome.FAILED, "stream_cut", 0),
        (b"", Outcome.FAILED, "connection_lost", 0),
        (b"SSH-2.0-x\r\n", Outcome.FAILED, "connection_lost", 0),
    ],
)
async def test_every_other_ending_has_its_word(answer: bytes, outcome: Outcome, reason: str, tokens: int) -> None:
    reply = await asked(answer)
    sample = reply.sample
    assert (sample.outcome, reply.reason, sample.output_tokens, len(sample.token_times)) == (
        outcome,
        reason,
        tokens,
        tokens,
    )
    assert sample.detail
    assert "\n" not in sample.detail


async def test_chats_are_read_with_their_usage() -> None:
    head = {"object": "chat.completion.chunk", "model": "m", "created": 1, "id": ""}
    chunk = {**head, "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]}
    end = {**head, "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "length"}]}
    usage = {**head, "choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22}}
    events = b"".join(b"data: " + one + b"\n\n" for one in (*map(orjson.dumps, (chunk, end, usage)), b"[DONE]"))
    head_bytes = f"HTTP/1.1 200 OK\r\nContent-Length: {len(events)}\r\nx-llmshed-lane: bulk\r\n\r\n".encode()
    reply = await asked(head_bytes + events, chat=True)
    assert (reply.sample.outcome, reply.sample.output_tokens, reply.lane) == (Outcome.FINISHED, 2, "bulk")


async def test_one_that_is_closed_tells_what_had_come() -> None:
    async with canned(Held(stream(token(), token(2), cut=True))) as server, client_of(server.url) as client:
        first = asyncio.Event()
        exchange = client.exchange(ASK, 1.0, on_first_token=first.set)
        request = client.wire.request(ASK, "a")
        running = asyncio.ensure_future(client.carry_out(exchange, request))
        async with asyncio.timeout(10):
            await first.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    sample = exchange.reply().sample
    assert (sample.outcome, sample.output_tokens, sample.status) == (Outcome.CANCELLED, 2, 200)


async def test_a_page_that_is_not_there_is_told() -> None:
    async with canned(whole(404, b"no")) as server, client_of(server.url) as client:
        with pytest.raises(EngineError, match=r"/metrics answered 404"):
            await client.read()
    async with client_of("http://127.0.0.1:1") as client:
        with pytest.raises(EngineError, match=r"nobody answers at http://127.0.0.1:1/metrics"):
            await client.read()
