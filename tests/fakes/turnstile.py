"""A way to a replica that can stop taking connections: further ones then hang in the kernel, as before a dead host."""

import asyncio
import contextlib
import socket
from typing import Self
from urllib.parse import urlsplit


class Turnstile:
    """Forwards connections to `url` while it is open; a context manager."""

    def __init__(self, url: str) -> None:
        target = urlsplit(url)
        self._target = (target.hostname or "", target.port or 0)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(0)
        self._accepting: asyncio.Task[None] | None = None
        self._pumps: set[asyncio.Task[None]] = set()
        self._fillers: list[socket.socket] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stop_accepting()
        self._drop_fillers()
        self._listening.close()
        for pump in self._pumps:
            pump.cancel()
        if self._pumps:
            await asyncio.wait(set(self._pumps))

    async def open(self) -> None:
        """Take connections again."""
        self._drop_fillers()
        self._listening.listen(512)
        self._accepting = asyncio.ensure_future(self._accept())

    async def shut(self) -> None:
        """Take no further connection, and fill the kernel's own queue until one more of them hangs."""
        await self._stop_accepting()
        self._listening.listen(1)
        loop = asyncio.get_running_loop()
        hangs = False
        while not hangs:
            filler = socket.socket()
            filler.settimeout(0)
            self._fillers.append(filler)
            try:
                await asyncio.wait_for(loop.sock_connect(filler, self._listening.getsockname()), 0.1)
            except TimeoutError:
                hangs = True

    async def _stop_accepting(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait({self._accepting})
            self._accepting = None

    def _drop_fillers(self) -> None:
        while self._fillers:
            self._fillers.pop().close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            taken, _ = await loop.sock_accept(self._listening)
            reader, writer = await asyncio.open_connection(sock=taken)
            pump = asyncio.ensure_future(self._forward(reader, writer))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry bytes both ways until either side ends."""
        try:
            there, onward = await asyncio.open_connection(*self._target)
        except ConnectionError:
            writer.close()
            return
        ways = {asyncio.ensure_future(_carry(reader, onward)), asyncio.ensure_future(_carry(there, writer))}
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            writer.close()
            onward.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while part := await reader.read(65_536):
            writer.write(part)
            await writer.drain()
