"""A proxy that harms one direction of its connections from a chosen byte on: late, in drops, stopped or cut."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum
from typing import Self
from urllib.parse import urlsplit


class Harm(Enum):
    """What befalls a direction."""

    NONE = "none"
    DELAY = "delay"
    DRIBBLE = "dribble"
    STALL = "stall"
    HALF_CLOSE = "half-close"
    CUT = "cut"
    RESET = "reset"

    @property
    def loses_bytes(self) -> bool:
        """Say whether the receiver never gets the rest."""
        return self not in {Harm.NONE, Harm.DELAY, Harm.DRIBBLE}


@dataclass(frozen=True, slots=True)
class Fault:
    """What befalls the bytes of one direction after the first `after` of them, which pass unharmed.

    A delay holds the rest back once, a dribble lets `piece_bytes` of it through at a time, each for `seconds`. A stall
    swallows it and leaves the connection open until somebody else ends it. A half-close ends this direction in order
    and lets the other go on; a cut ends both in order, a reset both without.
    """

    harm: Harm = Harm.NONE
    after: int = 0
    seconds: float = 0.0
    piece_bytes: int = 1


UNHARMED = Fault()


class FaultProxy:
    """Forwards connections to `url`, by the faults `there` and `back` that are set when they come; a context manager.

    `taken` counts the connections that came, `open` those that are not closed on both of their sides.
    """

    def __init__(self, url: str, there: Fault = UNHARMED, back: Fault = UNHARMED) -> None:
        target = urlsplit(url)
        self._target = (target.hostname or "", target.port or 0)
        self.there = there
        self.back = back
        self.taken = 0
        self._carried: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def open(self) -> int:
        return len(self._carried)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0, backlog=512)
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        for carried in self._carried:
            carried.cancel()
        if self._carried:
            await asyncio.wait(set(self._carried))
        await self._server.wait_closed()

    async def _take(self, near: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        carried = asyncio.current_task()
        assert carried is not None
        self.taken += 1
        self._carried.add(carried)
        writers = [near_out]
        try:
            far, far_out = await asyncio.open_connection(*self._target)
            writers.append(far_out)
            await _carry_both(_Way(self.there, near, far_out), _Way(self.back, far, near_out))
            for writer in writers:
                writer.close()
                await writer.wait_closed()
        except _ResetError:
            for writer in writers:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            for writer in writers:
                writer.transport.abort()
            self._carried.discard(carried)


class _CutError(Exception):
    """Both directions end in order."""


class _ResetError(Exception):
    """Both directions end at once, and what is under way is lost."""


@dataclass(frozen=True, slots=True)
class _Way:
    """One direction of a connection."""

    fault: Fault
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def carry(self, other_ended: asyncio.Event) -> None:
        """Carry bytes until their end; raises when the whole connection is to end."""
        fault, left = self.fault, self.fault.after
        async for part in self._parts():
            whole, rest = (part, b"") if fault.harm is Harm.NONE else (part[:left], part[left:])
            left -= len(whole)
            await self._pass(whole)
            if fault.harm.loses_bytes and left == 0:
                await self._lose(other_ended)
                return
            if fault.harm is Harm.DELAY and rest:
                fault = UNHARMED
                await asyncio.sleep(self.fault.seconds)
                await self._pass(rest)
            elif fault.harm is Harm.DRIBBLE:
                for start in range(0, len(rest), fault.piece_bytes):
                    await asyncio.sleep(fault.seconds)
                    await self._pass(rest[start : start + fault.piece_bytes])
        self._end()

    async def _parts(self) -> AsyncIterator[bytes]:
        while part := await self.reader.read(65_536):
            yield part

    async def _swallow(self) -> None:
        async for _ in self._parts():
            pass

    async def _pass(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def _lose(self, other_ended: asyncio.Event) -> None:
        match self.fault.harm:
            case Harm.STALL:
                waits = {asyncio.ensure_future(other_ended.wait()), asyncio.ensure_future(self._swallow())}
                try:
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for wait in waits:
                        wait.cancel()
                raise _CutError
            case Harm.HALF_CLOSE:
                self._end()
            case Harm.CUT:
                raise _CutError
            case _:
                raise _ResetError

    def _end(self) -> None:
        with contextlib.suppress(OSError):  # the receiver may be gone by now
            self.writer.write_eof()


async def _carry_both(there: _Way, back: _Way) -> None:
    """Carry bytes both ways until both have ended, or a fault or a lost peer ends them.

    Raises:
        _ResetError: the fault asks for it.
        ConnectionError: a peer is gone.
    """
    there_ended, back_ended = asyncio.Event(), asyncio.Event()
    ways = {
        asyncio.ensure_future(there.carry(back_ended)): there_ended,
        asyncio.ensure_future(back.carry(there_ended)): back_ended,
    }
    for way, ended in ways.items():
        way.add_done_callback(lambda _, ended=ended: ended.set())  # type: ignore[misc]  # bound at once
    try:
        done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
        for way in done:
            with contextlib.suppress(_CutError):
                way.result()
    finally:
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)
