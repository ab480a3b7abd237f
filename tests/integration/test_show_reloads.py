"""Reloads by SIGHUP under steady traffic: nothing is dropped, nothing miscounted, new replicas get work at once."""

import asyncio
import signal
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from conftest import Cli
from fakes.programs import Served, serve, simulate

RATE = 100
"""Requests a second, sent at their times whatever became of those before."""
BODY = {"inputs": "Hello", "parameters": {"details": True}}
REPLICA = (
    *("--step-seconds", "0.01", "--decode-sequence-seconds", "0", "--prefill-tokens-per-second", "1000000"),
    *("--output-mean", "ceiling", "--max-concurrent-requests", "512", "--kv-tokens", "100000"),
)

MISTAKE = "[server]\nmax_body_byts = 5\n"


def configuration(urls: list[str], ceiling: int) -> str:
    """Return a configuration of these replicas, in which a request that names no ceiling gets this one."""
    replicas = ", ".join(f'{{ name = "r{number}", url = "{url}" }}' for number, url in enumerate(urls, 1))
    return f"""
        lanes.interactive.default_output_tokens = {ceiling}
        [[pools]]
        gross_ceiling_tokens = 100_000
        max_concurrent_sequences = 512
        release_grace_seconds = 0.1
        replicas = [{replicas}]
    """


@dataclass(slots=True)
class Traffic:
    """What became of requests: their replicas and ceilings, and whatever was not a whole answer."""

    replicas: Counter[str] = field(default_factory=Counter)
    ceilings: Counter[str] = field(default_factory=Counter)
    wrong: list[Any] = field(default_factory=list)
    sent: int = 0

    async def run(self, served: Served, stop: asyncio.Event) -> None:
        """Send requests at the rate until told to stop, half of them streamed, and wait for their answers."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
            asyncio.TaskGroup() as all_,
        ):
            while not stop.is_set():
                all_.create_task(self._one(session, served, "/generate_stream" if self.sent % 2 else "/generate"))
                self.sent += 1
                await asyncio.sleep(max(0.0, began + self.sent / RATE - loop.time()))

    async def _one(self, session: aiohttp.ClientSession, served: Served, path: str) -> None:
        try:
            async with session.post(served.data + path, json=BODY) as answer:
                body = await answer.read()
        except aiohttp.ClientError as error:
            self.wrong.append(repr(error))
            return
        ceiling = answer.headers.get("x-llmshed-output-ceiling", "")
        # What was admitted under one configuration ends under it: with as many tokens as the client was told.
        whole = (
            body.count(b'"token":') == int(ceiling or -1) if "stream" in path else f'tokens":{ceiling}'.encode() in body
        )
        if answer.status != HTTPStatus.OK or not whole:
            self.wrong.append((answer.status, body[-300:]))
            return
        self.replicas[answer.headers["x-llmshed-replica"]] += 1
        self.ceilings[ceiling] += 1


@pytest.mark.parametrize(
    ("reloads", "seconds"),
    [
        pytest.param(10, 6.0, marks=[pytest.mark.slow, pytest.mark.timeout(120)]),
        pytest.param(100, 60.0, marks=[pytest.mark.soak, pytest.mark.timeout(300)]),
    ],
)
async def test_reloads_under_traffic_drop_nothing(tmp_path: Path, cli: Cli, reloads: int, seconds: float) -> None:
    """Each other reload adds or removes a replica; each fifth one reads a broken file, which must change nothing."""
    async with AsyncExitStack() as running:
        first, second = [await running.enter_async_context(simulate(*REPLICA)) for _ in range(2)]
        served = await running.enter_async_context(serve(tmp_path, configuration([first], 5)))
        session = await running.enter_async_context(aiohttp.ClientSession())
        traffic, stop, loop = Traffic(), asyncio.Event(), asyncio.get_running_loop()
        began = loop.time()
        asking = asyncio.ensure_future(traffic.run(served, stop))
        version = ""
        for number in range(reloads):
            await asyncio.sleep(max(0.0, began + (number + 1) * seconds / reloads - loop.time()))
            broken = number % 5 == 4
            urls = [first, second] if number % 2 else [first]
            served.config_file.write_text(MISTAKE if broken else configuration(urls, 5 + number % 7))
            before, version = version, await reloaded(session, served, broken=broken)
            assert (version == before) is broken
            assert await violations(session, served) == []
        took = loop.time() - began
        assert (await asyncio.to_thread(cli, "config", "check", "--config", served.config_file)).exit_code != 0
        stop.set()
        await asking
        state = await admin(session, served, "/admin/state")
    print(  # noqa: T201 - figures for whoever runs it with -s
        f"\n{reloads} reloads, {traffic.sent} requests in {took:.1f} s: {len(traffic.wrong)} wrong,"
        f" by replica {dict(traffic.replicas)}, ceilings {dict(traffic.ceilings)}"
    )
    assert traffic.wrong == []
    assert traffic.replicas.total() == traffic.sent
    assert traffic.replicas["r2"] > 0
    assert len(traffic.ceilings) > 3
    assert len(served.program.logged("config_reloaded")) == reloads - reloads // 5
    refused = served.program.logged("config_refused")
    assert len(refused) == reloads // 5
    assert all("max_body_byts" in str(line["problems"]) for line in refused)
    assert state["violations"] == []
    assert state["live_requests"] == 0
    assert [line["status"] for line in served.decisions()] == [HTTPStatus.OK] * traffic.sent


async def admin(session: aiohttp.ClientSession, served: Served, path: str) -> Any:
    async with session.get(served.admin + path) as answer:
        return await answer.json()


async def violations(session: aiohttp.ClientSession, served: Served) -> list[str]:
    """Return what the ledgers' recount finds broken at this instant."""
    found: list[str] = (await admin(session, served, "/admin/state"))["violations"]
    return found


async def reloaded(session: aiohttp.ClientSession, served: Served, *, broken: bool) -> str:
    """Send SIGHUP, wait until it was obeyed, and return the version in force."""
    event = "config_refused" if broken else "config_reloaded"
    before = len(served.program.logged(event))
    served.program.signal(signal.SIGHUP)
    await served.program.until(lambda: len(served.program.logged(event)) > before)
    async with session.get(f"{served.admin}/metrics") as answer:
        assert f"llmshed_config_last_reload_successful {0.0 if broken else 1.0}" in await answer.text()
    version: str = (await admin(session, served, "/admin/state"))["config_version"]
    return version
