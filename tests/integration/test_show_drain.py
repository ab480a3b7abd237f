"""SIGTERM with 200 running streams: nobody is cut, new work is told where it stands, and the exit is clean."""

import asyncio
import fcntl
import signal
import socket
import sys
import termios
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import aiohttp
import pytest

from fakes.engine import Conversation
from fakes.house import request_bytes
from fakes.programs import Served, serve, simulate
from fakes.talking_tgi import TalkingTgi

STREAMS = 200
TOKENS = 160
"""At 50 ms each: streams that outlive the drain delay."""
DELAY_SECONDS = 2.0
BODY = {"inputs": "Hello", "parameters": {"max_new_tokens": TOKENS}}
REPLICA = (
    *("--max-concurrent-requests", "512", "--kv-tokens", "200000", "--output-mean", "ceiling"),
    *("--step-seconds", "0.05", "--decode-sequence-seconds", "0", "--prefill-tokens-per-second", "1000000"),
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@asynccontextmanager
async def with_streams(place: Path) -> AsyncIterator[tuple[Served, list[aiohttp.ClientResponse]]]:
    """Serve a replica with all streams running, each of which has had its first bytes."""
    async with simulate(*REPLICA) as url:
        toml = f"""
            server.drain_delay_seconds = {DELAY_SECONDS}
            [[pools]]
            gross_ceiling_tokens = 200_000
            max_concurrent_sequences = 512
            replicas = [{{ name = "r1", url = "{url}" }}]
        """
        async with AsyncExitStack() as running:
            served = await running.enter_async_context(serve(place, toml))
            session = await running.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
            asked = [session.post(f"{served.data}/generate_stream", json=BODY) for _ in range(STREAMS)]
            streams = await asyncio.gather(*map(running.enter_async_context, asked))
            assert {stream.status for stream in streams} == {HTTPStatus.OK}
            yield served, streams


async def test_no_stream_is_cut_and_new_work_is_told_where_it_stands(tmp_path: Path) -> None:
    async with with_streams(tmp_path) as (served, streams), aiohttp.ClientSession() as session:
        reading = [asyncio.ensure_future(stream.read()) for stream in streams]
        assert await ready(session, served) == HTTPStatus.OK
        assert not any(task.done() for task in reading)
        signalled = time.perf_counter()
        served.program.signal(signal.SIGTERM)
        while await ready(session, served) == HTTPStatus.OK:
            pass
        seen = time.perf_counter() - signalled
        refused = 0
        while time.perf_counter() - signalled < DELAY_SECONDS - 0.5:
            await assert_told_of_the_drain(served)
            refused += 1
            await asyncio.sleep(0.1)
        assert refused >= 5
        await until_refused(served)
        closed = time.perf_counter() - signalled
        assert await ready(session, served) == HTTPStatus.SERVICE_UNAVAILABLE
        bodies = await asyncio.gather(*reading)
        ended = time.perf_counter() - signalled
        exit_code = await served.program.ended()
        left = time.perf_counter() - signalled
    print(  # noqa: T201 - figures for whoever runs it with -s
        f"\nafter SIGTERM with {STREAMS} streams: not ready {1000 * seen:.1f} ms, {refused} refusals,"
        f" listener closed {closed:.2f} s, last stream {ended:.2f} s, exit {left:.2f} s"
    )
    assert [body.count(b'"token":') for body in bodies] == [TOKENS] * STREAMS
    assert sum(b'"error"' in body for body in bodies) == 0
    assert exit_code == 0
    assert closed >= DELAY_SECONDS
    endings = [line["termination"] for line in served.decisions() if line["status"] == HTTPStatus.OK]
    assert endings == ["--"] * STREAMS


async def ready(session: aiohttp.ClientSession, served: Served) -> int:
    async with session.get(f"{served.admin}/readyz") as answer:
        await answer.read()
        return answer.status


async def assert_told_of_the_drain(served: Served) -> None:
    """Come anew, as a balancer that has not noticed yet would."""
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{served.data}/generate", json=BODY) as answer:
            assert (answer.status, answer.headers["x-llmshed-reason"]) == (HTTPStatus.SERVICE_UNAVAILABLE, "draining")
            assert answer.headers["Connection"].lower() == "close"
            assert (await answer.json())["code"] == "draining"
        async with session.get(f"{served.data}/health") as answer:
            assert answer.status == HTTPStatus.SERVICE_UNAVAILABLE


async def until_refused(served: Served) -> None:
    """Wait until the data listener takes no connection any more."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        except ConnectionRefusedError:
            return
        writer.close()
        await asyncio.sleep(0.02)


async def test_a_second_signal_tells_every_stream_and_exits(tmp_path: Path) -> None:
    async with with_streams(tmp_path) as (served, streams):
        reading = [asyncio.ensure_future(stream.read()) for stream in streams]
        served.program.signal(signal.SIGTERM)
        await served.program.until(lambda: served.program.logged("draining"))
        signalled = time.perf_counter()
        served.program.signal(signal.SIGTERM)
        exit_code = await served.program.ended()
        left = time.perf_counter() - signalled
        bodies = await asyncio.gather(*reading)
    print(f"\nafter a second signal with {STREAMS} streams: exit {left:.2f} s, code {exit_code}")  # noqa: T201 - as above
    # Without it the streams would have run to their ends.
    assert all(0 < body.count(b'"token":') < TOKENS for body in bodies)
    assert all(body.endswith(b"}\n\n") and body.count(b'"code":"upstream_error"') == 1 for body in bodies)
    assert {line["termination"] for line in served.decisions() if line["status"] == HTTPStatus.OK} == {"GD"}


async def test_clients_that_read_nothing_do_not_hold_up_the_exit_after_a_second_signal(tmp_path: Path) -> None:
    async def flood(conversation: Conversation) -> None:
        await conversation.open_stream()
        await conversation.pieces_until_left(EVENT, 0)

    async with TalkingTgi(flood) as engine:
        pool = f'[[pools]]\ntokenizer = "embedded"\nreplicas = [{{ name = "r1", url = "{engine.url}" }}]\n'
        async with serve(tmp_path, pool) as served, AsyncExitStack() as deaf:
            for _ in range(3):
                await deaf.enter_async_context(deaf_client(served))
            async with aiohttp.ClientSession() as session:
                assert await ready(session, served) == HTTPStatus.OK
                served.program.signal(signal.SIGTERM)
                await served.program.until(lambda: served.program.logged("draining"))
                signalled = time.perf_counter()
                served.program.signal(signal.SIGTERM)
                assert await served.program.ended() == 0
            left = time.perf_counter() - signalled
    print(f"\nafter a second signal with clients that read nothing: exit {left:.2f} s")  # noqa: T201 - as above


EVENT = (
    b'data: {"token":{"id":1,"text":"' + b"a" * 60_000 + b'","logprob":0,"special":false},"generated_text":null}\n\n'
)


@asynccontextmanager
async def deaf_client(served: Served) -> AsyncIterator[None]:
    """Ask for a stream and read none of it, until the gateway can write no more."""
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(request_bytes("/generate_stream", BODY))
        queued = -1
        while (now := _unread(client)) != queued:
            queued = now
            await asyncio.sleep(0.3)
        yield


def _unread(client: socket.socket) -> int:
    return int.from_bytes(fcntl.ioctl(client, termios.FIONREAD, bytes(4)), sys.byteorder)
