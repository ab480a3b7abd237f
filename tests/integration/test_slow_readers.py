"""Clients that read slowly or not at all: little is held of each, the slow are served, the others let go in their time.

Their replica could send without end; what stops it is that nobody takes what it sends.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from fakes.engine import Conversation
from fakes.house import request_bytes
from fakes.programs import Served, serve
from fakes.resident import resident_bytes
from fakes.talking_tgi import TalkingTgi

HELD_BYTES = 256 * 1024
"""Most memory of the gateway for each client that does not read."""
PIECE = b'data: {"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}\n\n' % (b"x" * 4_000)
WHOLE = b'{"generated_text":"%s"}' % (b"x" * 2_000_000)
CHAT = request_bytes(
    "/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 50, "stream": True}
)
GENERATE = request_bytes("/generate", {"inputs": "hi", "parameters": {"max_new_tokens": 50}})
CONFIG = """
[server]
write_stall_seconds = {stall_seconds}
[upstream]
pool_idle_seconds = 0.2
signal_interval_seconds = 0
[[pools]]
tokenizer = "embedded"
gross_ceiling_tokens = 1_000_000
max_concurrent_sequences = 1000
release_grace_seconds = 0.05
replicas = [{{ name = "r1", url = "{url}" }}]
"""


@dataclass(frozen=True, slots=True)
class Site:
    """A gateway in a process of its own before a replica in this one."""

    served: Served
    engine: TalkingTgi
    sent: list[int]
    session: aiohttp.ClientSession

    async def state(self) -> Any:
        async with self.session.get(f"{self.served.admin}/admin/state") as answer:
            return orjson.loads(await answer.read())

    async def at_rest(self, streams: int) -> None:
        """Wait until the replica has begun so many streams and sends nothing more."""
        before = -1
        while len(self.sent) < streams or min(self.sent) == 0 or before != sum(self.sent):
            before = sum(self.sent)
            await asyncio.sleep(0.5)


@asynccontextmanager
async def site(place: Path, stall_seconds: float) -> AsyncIterator[Site]:
    sent: list[int] = []

    async def talk(conversation: Conversation) -> None:
        if conversation.asked.path == "/generate":
            return await conversation.whole(WHOLE)
        await conversation.open_stream()
        number = len(sent)
        sent.append(0)
        try:
            while True:
                await conversation.piece(PIECE)
                sent[number] += len(PIECE)
        except ConnectionError:
            conversation.closed = True

    async with (
        TalkingTgi(talk, model_id="m", max_concurrent_requests=1000) as engine,
        serve(place, CONFIG.format(stall_seconds=stall_seconds, url=engine.url)) as served,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session,
    ):
        yield Site(served, engine, sent, session)


async def come(served: Served, asked: bytes) -> socket.socket:
    """Ask, and read nothing; the client's own kernel takes some kilobytes."""
    made = socket.socket()
    made.settimeout(0)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(made, ("127.0.0.1", served.port))
    await loop.sock_sendall(made, asked)
    return made


async def eventually(condition: Callable[[], bool], seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    ("number", "stall_seconds"),
    [
        pytest.param(30, 6.0, marks=pytest.mark.slow),
        pytest.param(200, 60.0, marks=[pytest.mark.soak, pytest.mark.timeout(300)]),
    ],
)
async def test_of_clients_that_never_read_little_is_held_and_they_are_let_go(
    tmp_path: Path, number: int, stall_seconds: float
) -> None:
    async with site(tmp_path, stall_seconds) as running:
        served = running.served
        descriptors = served.program.descriptors()
        first = await asyncio.gather(*(come(served, CHAT) for _ in range(10)))  # what is loaded once is loaded now
        await running.at_rest(len(first))
        before = resident_bytes(served.program.pid)
        began = time.monotonic()  # noqa: TID251 - compared with the times of another process
        clients = await asyncio.gather(*(come(served, CHAT) for _ in range(number)))
        await running.at_rest(len(first) + number)
        held = (resident_bytes(served.program.pid) - before) / number
        sent = sum(running.sent[len(first) :]) / number
        assert (await running.state())["live_requests"] == len(first) + number
        whole = await asyncio.gather(*(come(served, GENERATE) for _ in range(10)))  # at an end before they are read
        await eventually(lambda: served.program.descriptors() <= descriptors, 3 * stall_seconds + 20)
        took = time.monotonic() - began  # noqa: TID251 - as above
        print(f"\n{held / 1024:.0f} KiB held of each, {sent / 1024:.0f} KiB sent to each; gone after {took:.1f} s")  # noqa: T201 - read with -s
        assert held <= HELD_BYTES
        assert sent <= 32 * HELD_BYTES  # nearly all of it by the kernel, at the replica's own end
        assert took >= stall_seconds
        state = await running.state()
        assert state["live_requests"] == 0
        lines = [line for line in served.decisions() if line["streamed"]]
        assert {(line["ending"], line["termination"]) for line in lines} == {("cancelled", "CD")}
        assert len(lines) == len(first) + number
        streams = [one for one in running.engine.conversations if one.asked.path.startswith("/v1/")]
        await eventually(lambda: all(one.closed for one in streams), 10)
        for client in (*first, *clients, *whole):
            client.close()


@pytest.mark.parametrize(
    ("number", "stall_seconds", "pause_seconds"),
    [
        pytest.param(10, 1.0, 0.05, marks=pytest.mark.slow),
        pytest.param(100, 60.0, 1.0, marks=[pytest.mark.soak, pytest.mark.timeout(400)]),
    ],
)
async def test_clients_that_read_a_kilobyte_now_and_then_are_served_on(
    tmp_path: Path, number: int, stall_seconds: float, pause_seconds: float
) -> None:
    async with site(tmp_path, stall_seconds) as running:
        served = running.served
        loop = asyncio.get_running_loop()

        async def read_slowly(client: socket.socket) -> int:
            got = b""
            for _ in range(int(3 * stall_seconds / pause_seconds)):
                got += await loop.sock_recv(client, 1024)
                await asyncio.sleep(pause_seconds)
            return len(got)

        clients = [await come(served, CHAT) for _ in range(number)]
        read = await asyncio.gather(*map(read_slowly, clients))
        assert (await running.state())["live_requests"] == number
        print(f"\nread {min(read):,} to {max(read):,} bytes each")  # noqa: T201 - read with -s
        assert min(read) > stall_seconds / pause_seconds * 1024
        for client in clients:
            client.close()
