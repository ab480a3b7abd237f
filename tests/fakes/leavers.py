"""Clients that leave in a chosen phase by the dozen, while others beside them must not notice."""

import asyncio
import os
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import aiohttp

from fakes.house import House, request_bytes, until
from fakes.turns import turned_seconds
from llmshed.emulator import Emulator

AT_ONCE = 50
"""Leavers that are in the house together."""
BYSTANDER_TOKENS = 8


@dataclass(slots=True)
class Leaver:
    """One client that will leave."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    request_id: str
    left_at: float = 0.0

    def leave(self, manner: int) -> None:
        """Go by a reset, by closing, or by closing one's own direction only."""
        self.left_at = time.time()  # noqa: TID251 - compared with the decision line's wall clock
        sock: socket.socket = self.writer.get_extra_info("socket")
        match manner % 3:
            case 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.writer.transport.abort()
            case 1:
                self.writer.close()
            case _:
                self.writer.write_eof()

    async def gone(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return


@dataclass(slots=True)
class Measured:
    """What a run of leavers took, in seconds: a seat's way back, and until the last upstream socket was closed.

    `turned` has, for each batch, the turns of the loop until the last seat was back.
    """

    seats: list[float] = field(default_factory=list)
    turned: list[float] = field(default_factory=list)
    upstream: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        seats = sorted(self.seats) or [0.0]
        p99 = seats[int(0.99 * (len(seats) - 1))]
        told = (
            f"{len(self.seats)} seats back: median {1000 * seats[len(seats) // 2]:.1f} ms, p99 {1000 * p99:.1f} ms,"
            f" max {1000 * seats[-1]:.1f} ms"
        )
        sockets = f"; last upstream socket of a batch: max {1000 * max(self.upstream):.1f} ms" if self.upstream else ""
        return told + sockets


async def leave_in_batches(
    gate: House,
    number: int,
    request: Callable[[str], bytes],
    there: Callable[[list[Leaver]], Awaitable[None]],
    let_go: Callable[[], Awaitable[None]] | None = None,
    at: Emulator | None = None,
) -> tuple[Measured, list[dict[str, Any]]]:
    """Let clients come, wait until all of a batch are `there`, and leave; returns times and their decision lines.

    `request` writes what one of them sends, by its id; `let_go` ends what held them, once they have left; `at` is the
    replica that had got their requests, and must see its connections closed.
    """
    measured = Measured()
    lines: list[dict[str, Any]] = []
    ids = (f"leaver-{number}" for number in count())
    for sizes in _batches(number):
        batch = [await _arrive(gate, request, next(ids)) for _ in range(sizes)]
        await there(batch)
        began = time.time()  # noqa: TID251 - as above
        for manner, leaver in enumerate(batch):
            leaver.leave(manner)
        measured.turned.append(await turned_seconds(partial(_decisions_of, gate, batch)))
        found = await until(partial(_decisions_of, gate, batch))
        if at is not None:
            await until(partial(_let_go_of, at, len(lines) + len(batch)))
            measured.upstream.append(time.time() - began)  # noqa: TID251 - as above
        for leaver in batch:
            line = found[leaver.request_id]
            measured.seats.append(line["time_seconds"] + line["total_seconds"] - leaver.left_at)
            await leaver.gone()
        lines += [found[leaver.request_id] for leaver in batch]
        if let_go is not None:
            await let_go()
        await until(
            lambda: not any(replica.releasing_tokens for replica in gate.daemon.gateway.driver.state().replicas)
        )
        gate.decisions.clear()
    return measured, lines


def _batches(number: int) -> Iterator[int]:
    while number > 0:
        yield min(number, AT_ONCE)
        number -= AT_ONCE


async def _arrive(gate: House, request: Callable[[str], bytes], request_id: str) -> Leaver:
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
    writer.write(request(request_id))
    await writer.drain()
    return Leaver(reader, writer, request_id)


def _decisions_of(gate: House, batch: list[Leaver]) -> dict[str, dict[str, Any]] | None:
    found = {line["request_id"]: line for line in gate.decisions}
    return found if all(leaver.request_id in found for leaver in batch) else None


def _let_go_of(replica: Emulator, number: int) -> bool:
    return replica.replica.cancelled_total == number


def with_id(path: str, body: object, request_id: str) -> bytes:
    return request_bytes(path, body, f"x-request-id: {request_id}")


@asynccontextmanager
async def bystanders(gate: House, body: dict[str, Any]) -> AsyncIterator[list[int]]:
    """Ask for streams and whole answers all the while; yields a list of the tokens that each answer had.

    An answer that failed or is short stands there with what it had.
    """
    served: list[int] = []
    leaving = asyncio.Event()

    async def stream(session: aiohttp.ClientSession) -> None:
        while not leaving.is_set():
            async with session.post(f"{gate.data}/generate_stream", json=body) as answer:
                served.append((await answer.read()).count(b'"token":'))

    async def whole(session: aiohttp.ClientSession) -> None:
        details = {**body, "parameters": {**body["parameters"], "details": True}}
        while not leaving.is_set():
            async with session.post(f"{gate.data}/generate", json=details) as answer:
                served.append((await answer.json())["details"]["generated_tokens"])

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        asking = [asyncio.ensure_future(ask(session)) for ask in (stream, stream, whole)]
        try:
            yield served
        finally:
            leaving.set()
            await asyncio.gather(*asking)


@asynccontextmanager
async def nothing_left_behind() -> AsyncIterator[None]:
    """Hold the process to the tasks and descriptors that it had before, once it has come to rest."""
    before = _held()
    yield
    try:
        await until(lambda: all(now <= then for now, then in zip(_held(), before, strict=True)))
    except TimeoutError:
        raise AssertionError(f"tasks and descriptors: {_held()}, before: {before}") from None


def _held() -> tuple[int, int]:
    return len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only counted
