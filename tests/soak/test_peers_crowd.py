"""Thousands of slow clients beside healthy ones: each kind is closed in its time, and the healthy hardly notice.

What the healthy see is measured in alternating rounds with and without the crowd, and told as a ratio.
"""

import asyncio
import signal
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from fakes import crowd
from fakes.programs import Served, serve, simulate

IDLE, HEADERS, BODIES = 5_000, 500, 500
ROUNDS = 3
ROUND_SECONDS = 20.0
"""Longer than headers and bodies have, so that they are closed and come again all the while."""
REQUESTS_PER_SECOND = 50.0
MOST_TIMES_SLOWER = 2.0
ASKED = {"inputs": "Hello", "parameters": {"max_new_tokens": 1}}
REPLICA = ("--output-mean", "ceiling", "--step-seconds", "0.001", "--prefill-tokens-per-second", "1000000")
CONFIG = """
[[pools]]
gross_ceiling_tokens = 100_000
release_grace_seconds = 0.05
replicas = [{{ name = "r1", url = "{}" }}]
"""


@asynccontextmanager
async def crowded(port: int, told: list[Any]) -> AsyncIterator[None]:
    """Let the crowd come, and go at the end; what became of it is added to `told`."""
    program = await asyncio.create_subprocess_exec(
        sys.executable, Path(crowd.__file__), *map(str, (port, IDLE, HEADERS, BODIES)), stdout=asyncio.subprocess.PIPE
    )
    assert program.stdout is not None
    try:
        assert await asyncio.wait_for(program.stdout.readline(), 60) == b"here\n"
        yield
        program.send_signal(signal.SIGTERM)
        told.append(orjson.loads(await asyncio.wait_for(program.stdout.readline(), 60)))
    finally:
        if program.returncode is None:
            program.kill()
        await program.wait()


async def latencies(served: Served) -> list[float]:
    """Ask at a steady pace for a round; return the seconds that each answer took."""
    took: list[float] = []
    loop = asyncio.get_running_loop()
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        asyncio.TaskGroup() as group,
    ):

        async def ask() -> None:
            began = time.perf_counter()
            async with session.post(f"{served.data}/generate", json=ASKED) as answer:
                assert answer.status == 200
                await answer.read()
            took.append(time.perf_counter() - began)

        began = loop.time()
        for number in range(int(ROUND_SECONDS * REQUESTS_PER_SECOND)):
            await asyncio.sleep(max(0.0, began + number / REQUESTS_PER_SECOND - loop.time()))
            group.create_task(ask())
    return took


def p99(seconds: list[float]) -> float:
    return sorted(seconds)[int(0.99 * (len(seconds) - 1))]


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_thousands_of_slow_clients_slow_nobody_down(tmp_path: Path) -> None:
    told: list[Any] = []
    ratios: list[float] = []
    async with simulate(*REPLICA) as replica, serve(tmp_path, CONFIG.format(replica)) as served:
        await latencies(served)  # the first round warms up
        for _ in range(ROUNDS):
            alone = p99(await latencies(served))
            async with crowded(served.port, told):
                beside = p99(await latencies(served))
            await asyncio.sleep(2.0)  # until the gateway has closed what the crowd left
            ratios.append(beside / alone)
            print(f"\np99 alone {1000 * alone:.1f} ms, beside the crowd {1000 * beside:.1f} ms", end="")  # noqa: T201 - read with -s
        print(f"\n{statistics.median(ratios):.2f} times as slow; closed: {told}")  # noqa: T201 - as above
    assert statistics.median(ratios) <= MOST_TIMES_SLOWER
    for crowds in told:
        kinds, late = crowds["kinds"], crowds["latest_seconds"]
        assert set(kinds) == {"headers", "bodies"}  # the idle ones have longer than a round
        assert kinds["headers"]["closed"] >= HEADERS / 2
        assert kinds["bodies"]["closed"] >= BODIES / 2
        assert kinds["headers"]["longest_seconds"] < 17.0 + late
        assert kinds["bodies"]["longest_seconds"] < 15.0 + late
