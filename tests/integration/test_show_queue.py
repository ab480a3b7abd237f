"""A queue whose clients leave: their places are free at once, their engine never hears of them, the rest is served."""

import asyncio
import time
from collections import Counter
from typing import Any

import pytest

from fakes.house import House, until
from fakes.leavers import Leaver, nothing_left_behind, with_id
from fakes.loops import on_both_loops
from fakes.seats import PATIENT, SMALL, held, small_house, until_waiting, waiting

WAITING = 200
LEAVING = 180

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


async def arrive(gate: House, name: str, path: str, body: Any) -> Leaver:
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
    writer.write(with_id(path, body, name))
    await writer.drain()
    return Leaver(reader, writer, name)


async def first_to_stream(guests: list[Leaver]) -> None:
    """Wait until one of them has got an event; who comes first is the kernel's choice."""
    reading = [asyncio.ensure_future(guest.reader.readuntil(b"data:")) for guest in guests]
    await asyncio.wait(reading, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    assert any(task.done() for task in reading)
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)


@on_both_loops
async def test_of_two_hundred_who_wait_the_engine_sees_only_those_who_stay() -> None:
    async with small_house() as gate:
        engine = gate.replicas[0].replica
        async with held(gate):
            before = engine.received_total
            everyone = [await arrive(gate, f"waiting-{number}", "/generate", SMALL) for number in range(WAITING)]
            await until_waiting(gate, WAITING)
            staying = everyone[:: WAITING // (WAITING - LEAVING)]
            leaving = [one for one in everyone if one not in staying]
            began = time.perf_counter()
            for manner, leaver in enumerate(leaving):
                leaver.leave(manner)
            await until_waiting(gate, WAITING - LEAVING)
            took = time.perf_counter() - began
            queued = gate.daemon.gateway.driver.state().replicas[0].equation.queued_tokens
            assert queued == 3 * (WAITING - LEAVING)
            assert gate.daemon.gateway.driver.live == 1 + WAITING - LEAVING
            assert engine.received_total == before
        answers = await asyncio.gather(*(one.reader.readuntil(b"\r\n") for one in staying))
        assert set(answers) == {b"HTTP/1.1 200 OK\r\n"}
        assert engine.received_total == before + WAITING - LEAVING
        for one in everyone:
            await one.gone()
        ended = Counter(line["termination"] for line in gate.decisions if line["request_id"].startswith("waiting-"))
        assert ended == {"CQ": LEAVING, "--": WAITING - LEAVING}
    print(f"\n{LEAVING} of {WAITING} left the queue: all places free after {1000 * took:.0f} ms")  # noqa: T201 - figure


@on_both_loops
async def test_storms_of_leaving_clients_in_all_phases_leave_a_queue_that_is_right() -> None:
    """Streams in the middle, prompts in flight, requests that wait, bodies half read: they all go, again and again."""
    stream = {"inputs": "Hello", "parameters": {"max_new_tokens": 3000}}
    async with small_house(PATIENT + "queue_tokens = 1_000_000\n") as gate:
        assert (await gate.post("/generate", SMALL)).status == 200
        async with nothing_left_behind():
            for storm in range(4):
                names = [f"storm-{storm}-{number}" for number in range(30)]
                guests = [await arrive(gate, name, "/generate_stream", stream) for name in names]
                guests.append(await arrive(gate, f"storm-{storm}-half", "/generate", SMALL))
                patient = asyncio.ensure_future(gate.post("/generate", SMALL))
                await until(lambda: waiting(gate) >= 20)
                if storm % 2:
                    await first_to_stream(guests)
                for manner, guest in enumerate(guests):
                    guest.leave(manner)
                    if manner % 5 == storm % 5:
                        await asyncio.sleep(0)
                assert (await patient).status == 200
                for guest in guests:
                    await guest.gone()
                await until(lambda: gate.active_tokens() == 0 and gate.daemon.gateway.running() == 0)
                assert waiting(gate) == 0
                assert gate.daemon.gateway.driver.live == 0
                assert gate.daemon.gateway.driver.violations() == ()
        assert gate.replicas[0].replica.engine.check() == ()
        assert gate.replicas[0].replica.live == {}
