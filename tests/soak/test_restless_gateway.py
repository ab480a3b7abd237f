"""In real time, with leavers, deadlines and failing replicas, a gateway keeps nothing back.

20 minutes at 50 requests a second unless LLMSHED_SOAK_SECONDS says otherwise. One request in ten is left by its client,
one in twenty has a deadline that is soon over, and one in fifty meets a replica that dies under it.
"""

import asyncio
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from fakes.programs import Served, serve, simulate
from fakes.resident import resident_bytes

SECONDS = float(os.environ.get("LLMSHED_SOAK_SECONDS", "1200"))
REQUESTS_PER_SECOND = 50.0
WARM_UP_RATIO = 0.2
MOST_GROWTH_BYTES = 8 * 2**20
"""Of resident memory after the warm-up: arenas of an allocator are not given back, and a leak is many times that."""
REPLICA = (
    *("--max-concurrent-requests", "512", "--kv-tokens", "200000", "--output-mean", "40"),
    *("--step-seconds", "0.02", "--decode-sequence-seconds", "0", "--prefill-tokens-per-second", "50000"),
)
CONFIG = """
[lanes.interactive]
queue_requests = 40
[[pools]]
gross_ceiling_tokens = 20_000
release_grace_seconds = 0.2
replicas = [{{ name = "r1", url = "{}" }}, {{ name = "r2", url = "{}" }}]
"""


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 300)
async def test_after_restless_minutes_nothing_is_held(tmp_path: Path) -> None:
    rng = Random(1)  # noqa: S311 - one seed, one traffic
    ended: Counter[str] = Counter()
    async with (
        simulate(*REPLICA) as first,
        simulate(*REPLICA) as second,
        serve(tmp_path, CONFIG.format(first, second)) as served,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        descriptors = served.program.descriptors()
        resident: list[int] = []
        async with asyncio.TaskGroup() as group:
            loop = asyncio.get_running_loop()
            began, at, looks = loop.time(), 0.0, 0.0
            while at < SECONDS:
                at += rng.expovariate(REQUESTS_PER_SECOND)
                await asyncio.sleep(max(0.0, began + at - loop.time()))
                group.create_task(ask(session, served.data, Random(rng.random()), ended))  # noqa: S311 - as above
                if at >= looks:
                    looks += 1.0
                    group.create_task(disturb(session, rng.choice((first, second))))
                    if at > WARM_UP_RATIO * SECONDS:
                        resident.append(resident_bytes(served.program.pid))
        await session.close()
        state = await quiet_state(served)
        told = (
            f"{sum(ended.values()):,} requests: {dict(ended)}; grown by {(resident[-1] - resident[0]) / 2**20:.1f} MiB"
        )
        print(told)  # noqa: T201 - read with -s
        assert ended["200"] > 0.1 * sum(ended.values())
        assert ended["left"] > 0
        equations = [one["equation"] for one in state["replicas"]]
        assert [one["active_tokens"] + one["queued_tokens"] for one in equations] == [0, 0]
        assert served.program.logged("invariant_broken") == []
        assert abs(served.program.descriptors() - descriptors) <= 2
        assert resident[-1] - resident[0] < MOST_GROWTH_BYTES


async def ask(session: aiohttp.ClientSession, url: str, rng: Random, ended: Counter[str]) -> None:
    """Send one request, and leave it now and then."""
    headers = {"x-llmshed-deadline-ms": str(rng.randint(1, 1_000))} if rng.random() < 0.05 else {}
    body = {"inputs": "word " * rng.choice((5, 50, 500)), "parameters": {"max_new_tokens": rng.choice((5, 50, 200))}}
    route = rng.choice(("generate", "generate_stream"))
    try:
        async with asyncio.timeout(rng.uniform(0.0, 2.0) if rng.random() < 0.1 else None):
            async with session.post(f"{url}/{route}", json=body, headers=headers) as answer:
                await answer.read()
                ended[str(answer.status)] += 1
    except TimeoutError:
        ended["left"] += 1
    except aiohttp.ClientError as error:
        ended[type(error).__name__] += 1


async def disturb(session: aiohttp.ClientSession, replica: str) -> None:
    """Let the next request of a replica die under it."""
    async with session.post(f"{replica}/_simulate/faults", json={"die_after_events": 1, "times": 1}) as answer:
        await answer.read()


async def quiet_state(served: Served) -> Any:
    """Return the gateway's state once nothing is live, and its connections to replicas are closed."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(120):
        while True:
            async with session.get(f"{served.admin}/admin/state") as answer:
                state = await answer.json()
            if state["live_requests"] == 0 and not any(one["releasing_tokens"] for one in state["replicas"]):
                break
            await asyncio.sleep(0.5)
    await asyncio.sleep(30.0)  # longer than a kept-alive connection to a replica is kept
    return state
