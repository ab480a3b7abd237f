"""A replica that does what a test's script says, byte by byte, on a real socket."""

import asyncio
import contextlib
import fcntl
import os
import socket
import struct
import sys
import termios
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Self


@dataclass(slots=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Conversation:
    """One request on one connection, and the means to answer it well or badly."""

    asked: Asked
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    closed: bool = False
    superseded: bool = False

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def whole(self, body: bytes, status: str = "200 OK", headers: str = "") -> None:
        """Answer at once, with a length."""
        headers += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        await self.raw(f"HTTP/1.1 {status}\r\n{headers}\r\n".encode() + body)

    async def open_stream(self) -> None:
        """Send the 200 of an event stream, as TGI does before it knows whether it can serve."""
        await self.raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def piece(self, data: bytes) -> None:
        """Send one chunk of an open stream."""
        await self.raw(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def end_stream(self) -> None:
        await self.raw(b"0\r\n\r\n")

    async def pieces_until_left(self, data: bytes, every_seconds: float) -> None:
        """Send one chunk over and over until the gateway's side is gone."""
        with contextlib.suppress(ConnectionError):
            while True:
                await self.piece(data)
                await asyncio.sleep(every_seconds)
        self.closed = True

    def hang_up(self) -> None:
        """Close in order, at this very moment and not at the loop's next turn."""
        self.closed = True
        # A duplicate, because uvloop's own socket object cannot shut down.
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self._fileno())) as same:
            same.shutdown(socket.SHUT_RDWR)
        self.writer.close()

    def hang_up_if_idle(self) -> None:
        """Close as a server closes an idle connection: only while no byte of a further request has come."""
        gone = self.closed or self.superseded or self.writer.is_closing() or self.reader.at_eof()
        if gone or self.reader._buffer:  # type: ignore[attr-defined]  # StreamReader's own
            return
        waiting = fcntl.ioctl(self._fileno(), termios.FIONREAD, bytes(4))
        if not int.from_bytes(waiting, sys.byteorder):
            self.hang_up()

    def reset(self) -> None:
        """Close with a reset, as a killed process with unread bytes does."""
        self.closed = True
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def _fileno(self) -> int:
        number: int = self.writer.get_extra_info("socket").fileno()
        return number

    async def peer_leaves(self) -> None:
        """Wait until the gateway's side of the connection is gone."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65_536):
                pass
        self.closed = True


Script = Callable[[Conversation], Awaitable[None]]


class ScriptedEngine:
    """Listens on 127.0.0.1, or at the socket `listening`, and runs `script` for each request; a context manager.

    `asked` holds every request that was read to its end, `conversations` the open side of each.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.listening: socket.socket | None = None
        self.asked: list[Asked] = []
        self.conversations: list[Conversation] = []
        self.connections = 0
        self.left = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()
        return f"http://{host}:{port}"

    async def __aenter__(self) -> Self:
        where: dict[str, Any] = {"host": "127.0.0.1", "port": 0} if self.listening is None else {"sock": self.listening}
        self._server = await asyncio.start_server(self._accept, **where, backlog=512)
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        conversation: Conversation | None = None
        try:
            while (asked := await _read_request(reader)) is not None:
                self.asked.append(asked)
                if conversation is not None:
                    conversation.superseded = True
                conversation = Conversation(asked, reader, writer)
                self.conversations.append(conversation)
                await self.script(conversation)
                if conversation.closed:
                    self.left.set()
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def _read_request(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *lines = head.strip().split("\r\n")
        method, path, _ = line.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return Asked(method, path, headers, body)


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
