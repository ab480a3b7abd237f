"""A server that answers each request with the next of some canned answers, byte for byte, in this process."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import orjson


@dataclass(slots=True)
class Canned:
    """A running server and what it was sent: heads in lower case, and bodies."""

    url: str
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)


class Held(bytes):
    """An answer after which the connection stays open and silent."""


def whole(status: int, body: bytes, *headers: str) -> bytes:
    """Return an answer in one piece; the connection stays open."""
    return "\r\n".join((f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers)).encode() + b"\r\n\r\n" + body


def stream(*events: object, cut: bool = False, headers: Sequence[str] = ()) -> bytes:
    """Return a stream of TGI's events, whole or cut after the last."""
    lines = (b"data:" + orjson.dumps(event) + b"\n\n" for event in events)
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(line), line) for line in lines)
    head = "\r\n".join(("HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked", *headers))
    return head.encode() + b"\r\n\r\n" + chunks + (b"" if cut else b"0\r\n\r\n")


def token(number: int = 1, **more: object) -> dict[str, object]:
    """Return an event of one token."""
    return {"index": number, "token": {"id": 1, "text": "a", "logprob": -1.0, "special": False}, **more}


def last(tokens: int) -> dict[str, object]:
    """Return the event that ends an answer of so many tokens."""
    return token(tokens, generated_text="a", details={"finish_reason": "length", "generated_tokens": tokens})


@asynccontextmanager
async def canned(*answers: bytes) -> AsyncIterator[Canned]:
    """Serve the answers in order; those after the last get the last. An empty one closes the connection."""
    waiting = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = head.partition("content-length: ")[2].partition("\r\n")[0]
                server.heads.append(head)
                server.bodies.append(await reader.readexactly(int(length or 0)))
                answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
                writer.write(answer)
                await writer.drain()
                if isinstance(answer, Held):
                    await reader.read()
                if not answer or (b"chunked" in answer and not answer.endswith(b"0\r\n\r\n")):
                    break
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = listening.sockets[0].getsockname()
    server = Canned(f"http://{host}:{port}")
    async with listening:
        yield server
