"""Clients that leave, in every phase: their seats come back, their engines notice, nobody else is harmed."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.house import House, house, raw, request_bytes, until
from llmshed.tokenizing.counter import ExactCounter

LONG = {"inputs": "Hello", "parameters": {"max_new_tokens": 1000}}
EACH = 5
"""Departures in each phase; the thousand-fold runs are a soak's."""


@pytest.fixture
async def gate() -> AsyncIterator[House]:
    # A stream that ended before its client left may leave a pooled connection: it is closed soon, since tasks and
    # descriptors are counted.
    settings = "[server]\ndrain_delay_seconds = 0\n[upstream]\npool_idle_seconds = 0.05\n"
    async with house(settings, pool="release_grace_seconds = 0.05") as running:
        yield running


async def gone(gate: House, number: int) -> dict[str, Any]:
    """Wait for the decision lines of all that left, and for their tokens; return the last line."""
    await until(lambda: len(gate.decisions) >= number and gate.active_tokens() == 0)
    assert gate.daemon.gateway.running() == 0
    return gate.decisions[-1]


async def leave_after(gate: House, sent: bytes, moment: Any) -> None:
    async with raw(gate) as (reader, writer):
        writer.write(sent)
        await writer.drain()
        await moment(reader)
        writer.transport.abort()


async def test_while_the_body_is_read(gate: House) -> None:
    async def reading(_: asyncio.StreamReader) -> None:
        await until(lambda: gate.daemon.gateway.running() == 1)

    for _ in range(EACH):
        await leave_after(gate, request_bytes("/generate", LONG)[:-10], reading)
        await until(lambda: gate.daemon.gateway.running() == 0)
    line = await gone(gate, EACH)
    assert (line["ending"], line["termination"], line["status"]) == ("cancelled", "CB", 0)
    assert (line["decision"], line["reason"]) == (None, None)


@pytest.fixture
def slow_counter(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Hold every count until the event is set."""
    may_count = threading.Event()
    steps = ExactCounter.steps

    def held(self: ExactCounter, prompt: Any, enough_tokens: int | None = None) -> Any:
        may_count.wait(10)
        yield from steps(self, prompt, enough_tokens)

    may_count.set()
    monkeypatch.setattr(ExactCounter, "steps", held)
    yield may_count
    may_count.set()


async def test_while_the_prompt_is_counted(slow_counter: threading.Event) -> None:
    async with house("[counting]\ninline_bytes = 0\n") as gate:
        slow_counter.clear()

        async def counting(_: asyncio.StreamReader) -> None:
            await until(lambda: gate.daemon.gateway.counting.small_queue_bytes > 0)

        for _ in range(EACH):
            await leave_after(gate, request_bytes("/generate", LONG), counting)
            await until(lambda: gate.daemon.gateway.running() == 0)
        slow_counter.set()
        line = await gone(gate, EACH)
        assert (line["ending"], line["termination"]) == ("cancelled", "CT")
        assert (line["decision"], line["reason"], line["model"]) == (None, None, "llmshed/simulated")
        await until(lambda: gate.daemon.gateway.counting.small_queue_bytes == 0)


async def test_before_the_first_byte_and_in_the_stream(gate: House) -> None:
    async def admitted(_: asyncio.StreamReader) -> None:
        await until(lambda: gate.active_tokens() > 0)

    async def streaming(reader: asyncio.StreamReader) -> None:
        await reader.readuntil(b"data:")

    for _ in range(EACH):
        await leave_after(gate, request_bytes("/generate", LONG), admitted)
        await until(lambda: gate.active_tokens() == 0)
    line = await gone(gate, EACH)
    assert line["ending"] == "cancelled"
    assert line["termination"] in {"CS", "CP"}
    for _ in range(EACH):
        await leave_after(gate, request_bytes("/generate_stream", LONG), streaming)
        await until(lambda: gate.active_tokens() == 0)
    line = await gone(gate, 2 * EACH)
    assert (line["termination"], line["status"]) == ("CD", 200)
    assert 0 < line["output_tokens"] < 1000


async def test_a_stream_beside_those_that_leave_is_not_harmed(gate: House) -> None:
    body = {"inputs": "Hello", "parameters": {"max_new_tokens": 300}}

    async def leaving(reader: asyncio.StreamReader) -> None:
        await reader.readuntil(b"data:")

    served = asyncio.ensure_future(gate.post("/generate_stream", body))
    while not served.done():
        await leave_after(gate, request_bytes("/generate_stream", body), leaving)
    got = await served
    assert got.body.count(b"data:") == 300


async def test_half_closing_is_leaving(gate: House) -> None:
    async with raw(gate) as (reader, writer):
        writer.write(request_bytes("/generate_stream", LONG))
        await reader.readuntil(b"data:")
        writer.write_eof()
        line = await gone(gate, 1)
    assert line["termination"] == "CD"


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_no_task_and_no_descriptor_stays_behind(gate: House) -> None:
    async def streaming(reader: asyncio.StreamReader) -> None:
        await reader.readuntil(b"data:")

    await leave_after(gate, request_bytes("/generate_stream", LONG), streaming)
    await gone(gate, 1)
    await asyncio.sleep(0.1)
    before, files = asyncio.all_tasks(), open_files()
    short = request_bytes("/generate_stream", {"inputs": "Hello", "parameters": {"max_new_tokens": 100}})
    await asyncio.gather(*(leave_after(gate, short, streaming) for _ in range(30)))
    await gone(gate, 31)

    def settled() -> bool:
        return len(asyncio.all_tasks()) <= len(before) and open_files() <= files

    with contextlib.suppress(TimeoutError):
        await until(settled)
    assert len(asyncio.all_tasks()) <= len(before), asyncio.all_tasks() - before
    assert open_files() <= files
