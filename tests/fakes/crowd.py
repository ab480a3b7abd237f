"""A crowd of slow clients, run as a program of its own so that it costs the gateway's measured clients nothing.

`python crowd.py PORT IDLE HEADERS BODIES` keeps so many connections idle, so many dribbling headers and so many
dribbling bodies; one that the gateway closes comes again. It prints a line once each has come, and at SIGTERM an object
with what the gateway did to each kind, and how late this program itself was at its worst.
"""

import asyncio
import json
import random
import resource
import signal
import sys
from collections import defaultdict

HEADERS = b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
BODY = HEADERS + b"Content-Length: 100000\r\n\r\n{"
FIRST = {"idle": b"", "headers": HEADERS, "bodies": BODY}
PIECE = {"idle": b"", "headers": b"x", "bodies": b" "}
COME_AT_ONCE = 100
COME_WITHIN_SECONDS = 10.0
"""They come one by one, so that they do not all speak, and are not all closed, in the same moment."""


class Crowd:
    """The connections, and what became of those that were closed."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.came = 0
        self.latest_seconds = 0.0
        self.lasted: dict[str, list[float]] = defaultdict(list)
        self._coming = asyncio.Semaphore(COME_AT_ONCE)

    async def be(self, kind: str) -> None:
        """Be one such client again and again."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(random.uniform(0.0, COME_WITHIN_SECONDS))  # noqa: S311 - only spread
        first = True
        while True:
            try:
                async with self._coming:
                    reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                await asyncio.sleep(1.0)
                continue
            came_at = loop.time()
            self.came += first
            first = False
            try:
                writer.write(FIRST[kind])
                while not await self._closed_within_a_second(reader):
                    writer.write(PIECE[kind])
            except ConnectionError:
                pass  # what it sent last met a closed connection
            finally:
                writer.transport.abort()
            self.lasted[kind].append(loop.time() - came_at)

    async def _closed_within_a_second(self, reader: asyncio.StreamReader) -> bool:
        try:
            async with asyncio.timeout(1.0):
                while await reader.read(65_536):
                    pass
        except TimeoutError:
            return False
        return True

    async def look_at_itself(self) -> None:
        """Note how late this program's own loop runs, by which a connection seems to last longer than it did."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + 0.1
            await asyncio.sleep(0.1)
            self.latest_seconds = max(self.latest_seconds, loop.time() - due)

    def told(self) -> str:
        """Return for each kind how many were closed and how long the longest lasted, and this program's own delay."""
        kinds = {
            kind: {"closed": len(seconds), "longest_seconds": max(seconds)} for kind, seconds in self.lasted.items()
        }
        return json.dumps({"kinds": kinds, "latest_seconds": self.latest_seconds})


async def main(port: int, *numbers: int) -> None:
    """Keep the crowd until SIGTERM."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    crowd, enough = Crowd(port), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, enough.set)
    itself = asyncio.ensure_future(crowd.look_at_itself())
    clients = [
        asyncio.ensure_future(crowd.be(kind))
        for kind, number in zip(FIRST, numbers, strict=True)
        for _ in range(number)
    ]
    while crowd.came < len(clients) and not enough.is_set():  # noqa: ASYNC110 - only looked at, now and then
        await asyncio.sleep(0.05)
    sys.stdout.write("here\n")
    sys.stdout.flush()
    await enough.wait()
    sys.stdout.write(crowd.told() + "\n")
    for task in (itself, *clients):
        task.cancel()
    await asyncio.wait([itself, *clients])


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
