"""The interface to replicas over HTTP, and the two ways in which sending to one fails."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Protocol, Self

from llmshed.errors import EngineError

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""Most bytes of an answer that are ever held in memory at once."""


class NotSentError(EngineError):
    """The replica read no byte of the request, so it may be sent elsewhere."""


class LostError(EngineError):
    """The replica was lost, or broke HTTP, after it may have read the request: it is never sent again."""


class UpstreamAnswer(Protocol):
    """An answer whose status and headers have come; its body is read piece by piece."""

    @property
    def status(self) -> int:
        """Return the HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the end-to-end headers; those of the single hop are left out."""

    async def read(self) -> bytes:
        """Return the next bytes of the body as they came, or `b""` at its end. Reading slowly slows the replica.

        Raises:
            LostError: the connection broke, or the framing, before the end of the body.
        """

    async def deliver(self, take: Callable[[bytes], bool]) -> bool:
        """Give the next bytes to `take` as they come, until it returns False; False at the end of the body, else True.

        `take` may be called from where the bytes arrive, without a turn of the loop between; what it raises comes out
        here. After True the replica is slowed until the rest is read or delivered.

        Raises:
            LostError: as `read`.
        """

    def close(self) -> None:
        """End the exchange: unless the body was read to its end the socket is closed, so that the engine notices."""


class UpstreamClient(Protocol):
    """Sends requests to replicas."""

    async def send(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        on_connected: Callable[[], None] | None = None,
    ) -> UpstreamAnswer:
        """Send one request, a POST with `body` or a GET without, and return when status and headers have come.

        `on_connected` is called when the first byte is about to be written: from then on a lost request may have been
        read. Cancelling closes the socket.

        Raises:
            NotSentError: no connection, or it proved closed before the replica read a byte.
            LostError: the replica was lost after that, or what it answered is not HTTP.
        """

    async def close(self) -> None:
        """Close every connection."""


class ScopedUpstream(ABC):
    """An `UpstreamClient` that the end of its `async with` closes."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    @abstractmethod
    async def close(self) -> None:
        """Close every connection."""


async def read_whole(answer: UpstreamAnswer, max_bytes: int = MAX_ANSWER_BYTES) -> bytes:
    """Return the rest of the body.

    Raises:
        LostError: it did not come to its end, or is longer than `max_bytes`.
    """
    parts: list[bytes] = []
    size = 0
    while part := await answer.read():
        size += len(part)
        if size > max_bytes:
            answer.close()
            raise LostError(f"the answer is longer than the {max_bytes:,} bytes that are held")
        parts.append(part)
    return b"".join(parts)


async def ask(
    client: UpstreamClient,
    url: str,
    body: bytes | None,
    timeout_seconds: float,
    max_bytes: int = MAX_ANSWER_BYTES,
) -> tuple[int, bytes]:
    """Exchange one small question and answer with a replica: status and body.

    Raises:
        NotSentError: as `send`.
        LostError: as `send`, or no whole answer within `timeout_seconds` and `max_bytes`.
    """
    headers = {"Content-Type": "application/json"} if body is not None else {}
    try:
        async with asyncio.timeout(timeout_seconds):
            answer = await client.send(url, body, headers)
            try:
                return answer.status, await read_whole(answer, max_bytes)
            finally:
                answer.close()
    except TimeoutError:
        raise LostError(f"{url} did not answer within {timeout_seconds:g} s") from None
