"""Connections that open and close in every manner, by the thousand: no descriptor, task or token is left of them."""

import asyncio
import contextlib
import socket
import struct
from collections import Counter
from pathlib import Path

import aiohttp
import orjson
import pytest

from fakes.house import request_bytes
from fakes.programs import Served, serve, simulate
from fakes.resident import resident_bytes

AT_ONCE = 50
ASKED = {"inputs": "Hello", "parameters": {"max_new_tokens": 20}}
STREAM = request_bytes("/generate_stream", ASKED)
CHAT = request_bytes(
    "/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 20, "stream": True}
)
REPLICA = ("--output-mean", "ceiling", "--step-seconds", "0.005", "--max-concurrent-requests", "512")
CONFIG = """
[upstream]
pool_idle_seconds = 0.2
[[pools]]
gross_ceiling_tokens = 100_000
release_grace_seconds = 0.05
replicas = [{{ name = "r1", url = "{}" }}]
"""
MOST_GROWTH_BYTES = 8 * 2**20
"""Of resident memory while the connections of the second half come: allocators keep arenas, a leak grows with each."""


class Visitor:
    """One connection to the gateway, and the manners in which it may go."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def only_knock(self) -> None:
        """Say nothing."""

    async def knock_and_reset(self) -> None:
        self.reset()

    async def half_a_head(self) -> None:
        await self.say(STREAM[:40])

    async def half_a_body(self) -> None:
        await self.say(STREAM[:-10])

    async def half_a_body_and_reset(self) -> None:
        await self.say(STREAM[:-10])
        self.reset()

    async def no_http(self) -> None:
        await self.say(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n")
        await self.reader.read(100)

    async def nothing_to_read(self) -> None:
        await self.say(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        await self.reader.readuntil(b"\r\n\r\n")

    async def a_whole_stream(self) -> None:
        await self.say(CHAT)
        await self.reader.readuntil(b"[DONE]\n\n")

    async def leave_a_stream(self) -> None:
        await self.say(STREAM)
        await self.reader.readuntil(b"data:")

    async def leave_a_stream_by_a_reset(self) -> None:
        await self.leave_a_stream()
        self.reset()

    async def half_close_a_stream(self) -> None:
        await self.leave_a_stream()
        self.writer.write_eof()
        await self.reader.read()

    async def leave_at_once(self) -> None:
        await self.say(STREAM)

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


MANNERS = [
    manner for name, manner in vars(Visitor).items() if not name.startswith("_") and name not in {"say", "reset"}
]


async def come_and_go(served: Served, number: int, went: Counter[str]) -> None:
    """Let so many visitors come, some at once and each in the next manner."""
    numbers = iter(range(number))

    async def visit() -> None:
        for visitor in numbers:
            manner = MANNERS[visitor % len(MANNERS)]
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            with contextlib.suppress(ConnectionError):
                await manner(Visitor(reader, writer))
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            went[manner.__name__] += 1

    await asyncio.gather(*(visit() for _ in range(AT_ONCE)))


async def at_rest(served: Served, descriptors: int) -> None:
    """Wait until nothing is live or releasing, and no more descriptors are open than before anybody came."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session, asyncio.timeout(30):
        while True:
            async with session.get(f"{served.admin}/admin/state") as answer:
                state = orjson.loads(await answer.read())
            held = [one["equation"]["active_tokens"] + one["equation"]["queued_tokens"] for one in state["replicas"]]
            if state["live_requests"] == sum(held) == 0 and served.program.descriptors() <= descriptors + 1:
                break  # the one is that of this question
            await asyncio.sleep(0.1)
    async with asyncio.timeout(30):
        while served.program.descriptors() > descriptors:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(500, marks=pytest.mark.slow),
        pytest.param(10_000, marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
    ],
)
async def test_nothing_is_left_of_connections_that_came_and_went(tmp_path: Path, number: int) -> None:
    async with simulate(*REPLICA) as replica, serve(tmp_path, CONFIG.format(replica)) as served:
        went: Counter[str] = Counter()
        await come_and_go(served, 2 * len(MANNERS), Counter())  # what is opened once is open now
        await asyncio.sleep(1.0)
        descriptors = served.program.descriptors()
        await come_and_go(served, number // 2, went)
        halfway = resident_bytes(served.program.pid)
        await come_and_go(served, number // 2, went)
        await at_rest(served, descriptors)
        growth = resident_bytes(served.program.pid) - halfway
        print(f"\n{went.total():,} connections, {dict(went)}: memory of the second half {growth / 2**20:+.1f} MiB")  # noqa: T201 - read with -s
        assert went.total() == number
        assert len(went) == len(MANNERS)
        assert growth < MOST_GROWTH_BYTES
        assert served.program.logged("invariant_broken") == []
        answered = [line for line in served.decisions() if line["ending"] == "finished"]
        assert len(answered) >= went["a_whole_stream"]
