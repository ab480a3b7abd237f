"""What a client beside others sees of a gateway's pauses: the gaps in a stream, and how long `/livez` takes."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from fakes.programs import Served

LIVEZ_SECONDS = 0.01
"""Pause between two questions to `/livez`."""


@dataclass(slots=True)
class Pauses:
    """Seconds between two pieces of a stream, and from question to answer of `/livez`; `own` is the watcher's lag."""

    stream: list[float] = field(default_factory=list)
    livez: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        return "; ".join(
            f"{name}: {len(seen)} seen, p99 {1000 * sorted(seen)[int(0.99 * (len(seen) - 1))]:.1f} ms,"
            f" max {1000 * max(seen):.1f} ms"
            for name, seen in (("stream gaps", self.stream), ("livez", self.livez), ("watcher's own lag", self.own))
        )


@asynccontextmanager
async def watching(served: Served, stream: aiohttp.ClientResponse) -> AsyncIterator[Pauses]:
    """Watch a running stream and `/livez` until the block ends; both must go on all the while."""
    pauses = Pauses()
    tasks = [
        asyncio.ensure_future(task)
        for task in (_watch_stream(stream, pauses), _watch_livez(served, pauses), _watch_self(pauses))
    ]
    try:
        await asyncio.sleep(0.2)
        yield pauses
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _watch_stream(stream: aiohttp.ClientResponse, pauses: Pauses) -> None:
    last = None
    while await stream.content.readany():
        now = time.perf_counter()
        if last is not None:
            pauses.stream.append(now - last)
        last = now


async def _watch_livez(served: Served, pauses: Pauses) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            began = time.perf_counter()
            async with session.get(f"{served.admin}/livez") as answer:
                assert answer.status == 200
            pauses.livez.append(time.perf_counter() - began)
            await asyncio.sleep(LIVEZ_SECONDS)


async def _watch_self(pauses: Pauses) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.005)
        pauses.own.append(time.perf_counter() - began - 0.005)
