"""Hours of streams in which no timer acts but the silences that a lane documents, at the moments that it documents.

In leaping time a whole gateway before an emulated replica goes through hours in a second or two.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import orjson
import pytest

from fakes.engine import Conversation, ScriptedEngine
from fakes.front import Front, with_front
from fakes.house import QUICK, House, raw, request_bytes
from fakes.leaping import in_leaping_time, leaping_house
from llmshed.emulator.faults import FaultPlan
from llmshed.engines.sse import EventScanner
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters

BULK = {"x-llmshed-intent": "bulk"}


def more(*values: object) -> object:
    """Leave a case to the long runs: it shows the same as another one for the other lane or route."""
    return pytest.param(*values, marks=pytest.mark.soak)


@asynccontextmanager
async def slow_house(token_seconds: float, faults: FaultPlan | None = None) -> AsyncIterator[House]:
    """Run a gateway before a replica that takes so long for each token."""
    parameters = ReplicaParameters(step_times=StepTimes(token_seconds, 0, 0))
    slow = replace(QUICK, parameters=parameters, faults=faults or FaultPlan())
    async with leaping_house(replicas=(slow,)) as gate:
        yield gate


def asking_for(tokens: int) -> dict[str, Any]:
    return {"inputs": "Hello", "parameters": {"max_new_tokens": tokens}}


async def ended(gate: House) -> dict[str, Any]:
    """Return the decision line of the last request."""
    line = await gate.decision()
    gate.decisions.clear()
    return line


@pytest.mark.slow
@in_leaping_time
async def test_a_stream_of_two_hours_with_a_token_in_half_a_minute_is_cut_by_nothing() -> None:
    async with slow_house(30.0) as gate:
        chat = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 240, "stream": True}
        got = await gate.post("/v1/chat/completions", chat)
        assert got.body.endswith(b"data: [DONE]\n\n")
        line = await ended(gate)
        assert (line["ending"], line["output_tokens"]) == ("finished", 240)
        assert line["total_seconds"] >= 239 * 30.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("headers", "token_seconds", "status"),
    [({}, 59.0, 200), more({}, 61.0, 504), more(BULK, 119.0, 200), (BULK, 121.0, 504)],
)
@in_leaping_time
async def test_a_first_token_and_a_gap_may_take_as_long_as_the_lane_says(
    headers: dict[str, str], token_seconds: float, status: int
) -> None:
    """Bulk permits 600 s to the first token, so that only its gaps are judged here."""
    async with slow_house(token_seconds) as gate:
        got = await gate.ask("POST", "/generate_stream", json=asking_for(4), headers=headers)
        line = await ended(gate)
        if status == 200:
            assert got.body.count(b'"token":') == 4
            assert line["ending"] == "finished"
            return
        assert line["reason"] == "upstream_timeout"
        if headers:
            assert (got.status, got.body.count(b'"token":')) == (200, 1)
            assert line["total_seconds"] == pytest.approx(token_seconds + 120.0, abs=1.0)
        else:
            assert (got.status, got.reason) == (504, "upstream_timeout")
            assert line["total_seconds"] == pytest.approx(60.0, abs=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("headers", "limit_seconds"), [({}, 60.0), more(BULK, 120.0)])
@in_leaping_time
async def test_a_stream_that_falls_silent_ends_when_the_lane_says(
    headers: dict[str, str], limit_seconds: float
) -> None:
    async with slow_house(1.0, FaultPlan(stall_after_events=3)) as gate:
        got = await gate.ask("POST", "/generate_stream", json=asking_for(50), headers=headers)
        line = await ended(gate)
    assert got.body.count(b'"token":') == 3
    *_, told = EventScanner().feed(got.body)
    assert orjson.loads(told or b"")["reason"] == "upstream_timeout"
    assert line["total_seconds"] == pytest.approx(3.0 + limit_seconds, abs=2.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("route", "delay_seconds", "headers", "status"),
    [
        ("/generate_stream", 400.0, BULK, 200),
        more("/generate", 400.0, BULK, 200),
        more("/generate_stream", 400.0, {}, 504),
        more("/generate_stream", 610.0, BULK, 504),
        ("/generate", 700.0, BULK, 504),
    ],
)
@in_leaping_time
async def test_a_first_byte_after_minutes_is_waited_for_where_the_lane_says_so(
    route: str, delay_seconds: float, headers: dict[str, str], status: int
) -> None:
    async with slow_house(1.0, FaultPlan(first_byte_delay_seconds=delay_seconds)) as gate:
        got = await gate.ask("POST", route, json=asking_for(50), headers=headers)
        assert got.status == status
        line = await ended(gate)
        # A whole answer has the TPOT objective for each token of its ceiling beside: 50 times 0.1 s.
        limit_seconds = (600.0 if headers else 60.0) + (0.0 if "stream" in route else 5.0)
        assert line["total_seconds"] == pytest.approx(delay_seconds if status == 200 else limit_seconds, abs=60.0)
        assert line["total_seconds"] <= limit_seconds + 1.0 or status == 200


@pytest.mark.slow
@in_leaping_time
async def test_a_connection_is_kept_for_its_documented_time_and_no_longer() -> None:
    async with slow_house(0.01) as gate, raw(gate) as (reader, writer):
        for _ in range(3):
            writer.write(request_bytes("/generate", asking_for(2)))
            assert b"generated_text" in await reader.readuntil(b"}")
            await asyncio.sleep(74.0)
        assert not reader.at_eof()
        await asyncio.sleep(2.0)
        assert reader.at_eof()


@with_front
async def test_an_event_of_hundreds_of_kilobytes_passes_unchanged(front: Front) -> None:
    """Longer than what a reader by lines takes."""
    long = b'data: {"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}\n\n' % (b"x" * 600_000)
    stop = b'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        await conversation.piece(long)
        await conversation.piece(long + stop)
        await conversation.end_stream()

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        chat = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
        assert (await front.post("/v1/chat/completions", chat)).body == long + long + stop
