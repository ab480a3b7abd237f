"""SIGTERM and SIGHUP while requests wait: whoever waits is served or answered, and the exit is clean."""

import asyncio
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
import pytest

from fakes.programs import Served, serve, simulate

STREAMS = 8
WAITING = 40
BODY = {"inputs": "Hello", "parameters": {"max_new_tokens": 2}}
REPLICA = (
    *("--max-concurrent-requests", "512", "--kv-tokens", "200000", "--output-mean", "ceiling"),
    *("--step-seconds", "0.02", "--decode-sequence-seconds", "0", "--prefill-tokens-per-second", "1000000"),
)

pytestmark = pytest.mark.timeout(120)

Answer = tuple[int, str, bytes]


def configuration(urls: list[str], window_seconds: float, residence_seconds: float, queue_requests: int = 256) -> str:
    """Return a configuration of these replicas, each with as many seats as there are streams."""
    replicas = ", ".join(f'{{ name = "r{number}", url = "{url}" }}' for number, url in enumerate(urls, 1))
    return f"""
        [server]
        drain_delay_seconds = 0.2
        drain_window_seconds = {window_seconds}
        [lanes.interactive]
        max_residence_seconds = {residence_seconds}
        queue_requests = {queue_requests}
        [[pools]]
        gross_ceiling_tokens = 200_000
        max_concurrent_sequences = {STREAMS}
        release_grace_seconds = 0.1
        replicas = [{replicas}]
    """


@asynccontextmanager
async def with_a_queue(
    place: Path, tokens: int, window_seconds: float, residence_seconds: float
) -> AsyncIterator[tuple[Served, list["asyncio.Task[bytes]"], list["asyncio.Task[Answer]"]]]:
    """Serve a replica whose seats are taken by streams of so many tokens, while others wait for them."""
    async with simulate(*REPLICA) as url, AsyncExitStack() as running:
        toml = configuration([url], window_seconds, residence_seconds)
        served = await running.enter_async_context(serve(place, toml))
        session = await running.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        body = {"inputs": "Hello", "parameters": {"max_new_tokens": tokens}}
        asked = [session.post(f"{served.data}/generate_stream", json=body) for _ in range(STREAMS)]
        streams = await asyncio.gather(*map(running.enter_async_context, asked))
        assert {stream.status for stream in streams} == {200}
        reading = [asyncio.ensure_future(stream.read()) for stream in streams]
        waiting = [asyncio.ensure_future(ask(session, served)) for _ in range(WAITING)]
        await until_in_house(session, served, STREAMS + WAITING)
        yield served, reading, waiting


async def ask(session: aiohttp.ClientSession, served: Served) -> Answer:
    async with session.post(f"{served.data}/generate", json=BODY) as answer:
        return answer.status, answer.headers.get("x-llmshed-reason", ""), await answer.read()


async def until_in_house(session: aiohttp.ClientSession, served: Served, number: int) -> None:
    async with asyncio.timeout(30):
        while True:
            async with session.get(f"{served.admin}/admin/state") as answer:
                if orjson.loads(await answer.read())["requests_in_house"] == number:
                    return
            await asyncio.sleep(0.02)


async def until_logged(served: Served, event: str, times: int) -> None:
    await served.program.until(lambda: len(served.program.logged(event)) == times)


def terminations(served: Served) -> Counter[str]:
    return Counter(line["termination"] for line in served.decisions() if line["output_ceiling_tokens"] == 2)


@pytest.mark.slow
async def test_who_waits_is_served_within_the_drain(tmp_path: Path) -> None:
    async with with_a_queue(tmp_path, tokens=60, window_seconds=60, residence_seconds=600) as (
        served,
        reading,
        waiting,
    ):
        assert not any(task.done() for task in (*reading, *waiting))
        served.program.signal(signal.SIGTERM)
        bodies, answers = await asyncio.gather(*reading), await asyncio.gather(*waiting)
        assert await served.program.ended() == 0
    assert [body.count(b'"token":') for body in bodies] == [60] * STREAMS
    assert [status for status, _, _ in answers] == [200] * WAITING
    assert terminations(served) == {"--": WAITING}


@pytest.mark.soak
async def test_who_waits_longer_than_the_drain_window_is_told_that_it_ends(tmp_path: Path) -> None:
    async with with_a_queue(tmp_path, tokens=1000, window_seconds=0.5, residence_seconds=6000) as parts:
        served, reading, waiting = parts
        served.program.signal(signal.SIGTERM)
        bodies, answers = await asyncio.gather(*reading), await asyncio.gather(*waiting)
        assert await served.program.ended() == 0
    assert all(body.count(b'"code":"upstream_error"') == 1 for body in bodies)
    assert {(status, reason) for status, reason, _ in answers} == {(503, "draining")}
    assert all(orjson.loads(body)["code"] == "draining" for _, _, body in answers)
    assert terminations(served) == {"GQ": WAITING}


@pytest.mark.slow
async def test_a_second_signal_answers_all_who_wait_and_exits(tmp_path: Path) -> None:
    async with with_a_queue(tmp_path, tokens=1000, window_seconds=600, residence_seconds=6000) as parts:
        served, reading, waiting = parts
        served.program.signal(signal.SIGTERM)
        await served.program.until(lambda: served.program.logged("draining"))
        began = time.perf_counter()
        served.program.signal(signal.SIGINT)
        _, answers = await asyncio.gather(*reading), await asyncio.gather(*waiting)
        assert await served.program.ended() == 0
        took = time.perf_counter() - began
    print(f"\nafter a second signal with {WAITING} who wait: exit {took:.2f} s")  # noqa: T201 - the figure, with -s
    assert {(status, reason) for status, reason, _ in answers} == {(503, "draining")}
    assert terminations(served) == {"GQ": WAITING}


@pytest.mark.soak
async def test_reloads_lose_nobody_who_waits(tmp_path: Path) -> None:
    """A second replica comes and goes, and the bounds of the queue with it."""
    async with (
        simulate(*REPLICA) as other,
        with_a_queue(tmp_path, tokens=100, window_seconds=60, residence_seconds=6000) as parts,
        aiohttp.ClientSession() as session,
    ):
        served, reading, waiting = parts
        (url,) = re.findall(r'"r1", url = "([^"]+)"', served.config_file.read_text())
        for number in range(1, 7):
            urls = [url, other] if number % 2 else [url]
            served.config_file.write_text(configuration(urls, 60, 6000 / number, queue_requests=number % 3))
            served.program.signal(signal.SIGHUP)
            await until_logged(served, "config_reloaded", number)
            await until_logged(served, "replica_up", 1 + (number + 1) // 2)
            async with session.get(f"{served.admin}/admin/state") as answer:
                assert orjson.loads(await answer.read())["violations"] == []
        bodies, answers = await asyncio.gather(*reading), await asyncio.gather(*waiting)
        async with session.get(f"{served.admin}/admin/state") as answer:
            state = orjson.loads(await answer.read())
    assert [body.count(b'"token":') for body in bodies] == [100] * STREAMS
    assert [status for status, _, _ in answers] == [200] * WAITING
    assert (state["violations"], state["live_requests"]) == ([], 0)
    assert terminations(served) == {"--": WAITING}
    assert {line["replica"] for line in served.decisions()} == {"r1", "r2"}
