"""A streaming server of known delays that stamps what it does, in a process of its own.

`POST /generate_stream` answers as Text Generation Inference does: the first event after `--first`, others after `--gap`
each. Every `--stall-every`-th answer stands still for `--stall` seconds before its middle event. `GET /stamps` tells of
each request when it was read whole and when each event was written, by the machine's monotonic clock.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from subprocess import PIPE, Popen
from urllib.request import urlopen

Stamps = list[list[float]]


@dataclass(frozen=True, slots=True)
class Stub:
    """A running stub."""

    url: str

    def stamps(self) -> Stamps:
        """Return the stamps of each request: read whole, then each event."""
        with urlopen(f"{self.url}/stamps", timeout=30) as page:  # noqa: S310 - on the loopback
            stamps: Stamps = json.loads(page.read())
        return stamps


@contextmanager
def timed_stub(*options: str) -> Iterator[Stub]:
    """Run the stub in a process of its own."""
    with Popen([sys.executable, __file__, *options], stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Stub(process.stdout.readline().strip())
        finally:
            process.terminate()
            process.wait(10)


class _Answering:
    def __init__(self, first: float, gap: float, stall: float, stall_every: int) -> None:
        self.first, self.gap, self.stall, self.stall_every = first, gap, stall, stall_every
        self.stamps: Stamps = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if head.startswith(b"GET"):
                    body = json.dumps(self.stamps).encode()
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                else:
                    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                    await self._answer(json.loads(await reader.readexactly(length)), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _answer(self, body: dict[str, dict[str, int]], writer: asyncio.StreamWriter) -> None:
        stamps = [time.monotonic()]  # noqa: TID251 - the stub is a measuring instrument of its own
        self.stamps.append(stamps)
        stalls = self.stall_every and len(self.stamps) % self.stall_every == 0
        tokens = body["parameters"]["max_new_tokens"]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        due = stamps[0]
        for number in range(1, tokens + 1):
            due += self.first if number == 1 else self.gap
            if stalls and number == tokens // 2 + 1:
                due += self.stall
            await asyncio.sleep(max(0.0, due - time.monotonic()))  # noqa: TID251 - as above
            event = {"index": number, "token": {"id": 1, "text": " a", "logprob": -1.0, "special": False}}
            end = {"generated_text": "a", "details": {"finish_reason": "length", "generated_tokens": tokens}}
            line = b"data:" + json.dumps({**event, **(end if number == tokens else {})}).encode() + b"\n\n"
            writer.write(b"%x\r\n" % len(line) + line + b"\r\n")
            stamps.append(time.monotonic())  # noqa: TID251 - as above
        writer.write(b"0\r\n\r\n")


async def _run() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("first", 0.05), ("gap", 0.02), ("stall", 0.0)):
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("--stall-every", type=int, default=0)
    options = parser.parse_args()
    answering = _Answering(options.first, options.gap, options.stall, options.stall_every)
    server = await asyncio.start_server(answering.serve, "127.0.0.1", 0, backlog=4096)
    host, port = server.sockets[0].getsockname()
    sys.stdout.write(f"http://{host}:{port}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(_run())
