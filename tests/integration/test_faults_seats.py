"""A seat is held from the dispatch to the last byte, and comes back whatever ends the answer.

In leaping time, by the times that are documented.
"""

import asyncio
from contextlib import AsyncExitStack
from itertools import count

import aiohttp
import pytest

from fakes.house import QUICK, House, raw, request_bytes, until
from fakes.leaping import in_leaping_time, leaping_house
from fakes.seats import SMALL

ROUNDS = 50
ONE_SEAT = "max_concurrent_sequences = 1\nrelease_grace_seconds = 0.05\n"
NO_QUEUE = "[lanes.interactive]\nqueue_requests = 0\n[lanes.bulk]\nqueue_requests = 0\n"
LONG = {"inputs": "Hello", "parameters": {"max_new_tokens": 500}}


async def all_free(gate: House) -> None:
    """Wait until no seat is held and no request is in the house."""
    await until(lambda: gate.active_tokens() == 0 and gate.daemon.gateway.running() == 0)
    assert gate.daemon.gateway.driver.charged == 0


def up(gate: House) -> list[str]:
    return [one.name for one in gate.daemon.gateway.driver.state().replicas if one.up]


@pytest.mark.slow
@in_leaping_time
async def test_one_seat_survives_streams_that_are_left_and_answers_that_time_out() -> None:
    async with leaping_house(NO_QUEUE, pool=ONE_SEAT) as gate:
        engine = gate.replicas[0].replica.engine
        for _ in range(ROUNDS):
            async with raw(gate) as (reader, writer):
                writer.write(request_bytes("/generate_stream", LONG))
                await reader.readuntil(b"data:")
                writer.transport.abort()
            await all_free(gate)
        for number in range(ROUNDS):
            engine.stall(float("inf"))
            got = await gate.post(("/generate", "/generate_stream")[number % 2], SMALL)
            assert (got.status, got.reason) == (504, "upstream_timeout")
            engine.stall(0)
            await all_free(gate)
        assert (await gate.post("/generate", SMALL)).status == 200
        ended = [line["ending"] for line in gate.decisions]
        assert (ended.count("cancelled"), ended.count("failed")) == (ROUNDS, ROUNDS)


@pytest.mark.slow
@in_leaping_time
async def test_a_seat_is_held_until_the_last_byte_of_its_stream() -> None:
    pool = ONE_SEAT.replace("= 1", "= 2")
    async with leaping_house(NO_QUEUE, pool=pool) as gate, AsyncExitStack() as stack:

        async def ask() -> aiohttp.ClientResponse:
            asked = LONG | {"inputs": f"Hello {next(numbers)}"}  # a repeat that comes too early is refused by design
            return await stack.enter_async_context(gate.session.post(f"{gate.data}/generate_stream", json=asked))

        numbers = count()
        answers = [await ask() for _ in range(5)]
        assert [answer.status for answer in answers] == [200, 200, 429, 429, 429]
        assert {answer.headers["x-llmshed-reason"] for answer in answers[2:]} == {"concurrency_limit"}
        first, second, *_ = answers
        held = gate.active_tokens()
        for _ in range(3):  # long after the handlers have sent their status, and no matter how much was read
            await first.content.readany()
            assert (await ask()).status == 429
        assert gate.active_tokens() == held
        first.close()
        await until(lambda: gate.active_tokens() == held / 2)
        third = await ask()
        assert third.status == 200, await third.text()
        assert (await second.content.read()).count(b'"token":') == 500
        await until(lambda: gate.active_tokens() == held / 2)
        await stack.aclose()
        await all_free(gate)


@pytest.mark.slow
@in_leaping_time
async def test_what_is_full_is_429_and_what_is_gone_is_503() -> None:
    async with leaping_house(NO_QUEUE, replicas=(QUICK, QUICK), pool=ONE_SEAT) as gate, AsyncExitStack() as stack:
        dead_one, full_one = gate.replicas
        await dead_one.stop()
        while up(gate) != ["r2"]:  # until the first was tried and found dead
            assert (await gate.post("/generate", SMALL)).status in {200, 502}
            await all_free(gate)
            await asyncio.sleep(1.0)
        await stack.enter_async_context(gate.session.post(f"{gate.data}/generate_stream", json=LONG))
        full = [await gate.post("/generate", SMALL) for _ in range(10)]
        assert {(got.status, got.reason) for got in full} == {(429, "concurrency_limit")}
        assert (await gate.ask("GET", "/readyz", admin=True)).status == 200
        await stack.aclose()
        await all_free(gate)
        await full_one.stop()
        while up(gate):
            assert (await gate.post("/generate", SMALL)).status in {502, 503}
            await asyncio.sleep(1.0)
        gone = [await gate.post("/generate", SMALL) for _ in range(10)]
        assert {(got.status, got.reason) for got in gone} == {(503, "no_replica")}
        assert (await gate.ask("GET", "/livez", admin=True)).status == 200
        assert (await gate.ask("GET", "/readyz", admin=True)).status == 503
