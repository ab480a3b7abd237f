"""What a gateway makes is freed by its reference counts: no ending of a request leaves a circle to the collector.

Full collections are rare in a gateway, since each stops the event loop for as long as it looks through all that lives.
"""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest

from fakes.house import House, house, raw, request_bytes, until
from fakes.wire import talk

TIMES = 5
SHORT = {"inputs": "Hello", "parameters": {"max_new_tokens": 2}}
LONG = {"inputs": "Hello", "parameters": {"max_new_tokens": 4000}}
ENDLESS = {"inputs": "Hello " * 100_000, "parameters": {"max_new_tokens": 2}}
HEAD = b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@contextmanager
def circles() -> Iterator[Counter[str]]:
    """Count, by their types, the gateway's own objects that only a collection would free."""
    found: Counter[str] = Counter()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        kinds = [type(one) for one in gc.garbage]
        found.update(kind.__qualname__ for kind in kinds if kind.__module__.startswith("llmshed"))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def served(gate: House) -> None:
    assert (await gate.post("/generate", SHORT)).status == 200


async def streamed(gate: House) -> None:
    assert (await gate.post("/generate_stream", SHORT)).status == 200


async def refused_by_its_bytes(gate: House) -> None:
    assert (await gate.post("/generate", ENDLESS)).status == 413


async def refused_by_its_count(gate: House) -> None:
    assert (await gate.post("/generate", SHORT | {"parameters": {"max_new_tokens": 10**6}})).status == 413


async def not_http(gate: House) -> None:
    assert b"400" in await talk(gate.port, b"GARBAGE\r\n\r\n")


async def broken_framing(gate: House) -> None:
    assert b"400" in await talk(gate.port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"x\r\n")


@asynccontextmanager
async def left(gate: House) -> AsyncIterator[asyncio.StreamWriter]:
    """Leave the gateway by a reset at the end, and wait until it has noticed."""
    async with raw(gate) as (reader, writer):
        yield writer
        with suppress(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.05)
        writer.transport.abort()
    await until(lambda: gate.daemon.gateway.running() == 0)


async def left_in_its_body(gate: House) -> None:
    async with left(gate) as writer:
        writer.write(HEAD + b"Content-Length: 100\r\n\r\n{")


async def left_in_its_stream(gate: House) -> None:
    async with left(gate) as writer:
        writer.write(request_bytes("/generate_stream", LONG))


async def left_before_its_answer(gate: House) -> None:
    async with left(gate) as writer:
        writer.write(request_bytes("/generate", LONG))


ENDINGS = (
    served,
    streamed,
    refused_by_its_bytes,
    refused_by_its_count,
    not_http,
    broken_framing,
    left_in_its_body,
    left_in_its_stream,
    left_before_its_answer,
)


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDINGS, ids=lambda end: end.__name__)
async def test_no_ending_leaves_work_for_the_collector(end: Callable[[House], Awaitable[None]]) -> None:
    async with house() as gate:
        await end(gate)  # what is made once
        with circles() as found:
            for _ in range(TIMES):
                await end(gate)
            await asyncio.sleep(0.05)
    assert not {kind: number for kind, number in found.items() if number >= TIMES}
