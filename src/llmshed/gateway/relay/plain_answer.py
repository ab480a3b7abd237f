"""An answer on a connection of our own: its bytes wait for a reader, or go to a taker from where they arrive."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from llmshed.gateway.relay.answer_parser import AnswerHead
from llmshed.gateway.relay.upstream import LostError, NotSentError

MOST_HELD_BYTES = 64 * 1024
"""Bytes that may wait for a reader before the replica is made to wait; one read of the socket may come on top."""


class Carrier(Protocol):
    """The connection that an answer comes by."""

    def pause(self) -> None:
        """Read no more from the replica for now."""

    def resume(self) -> None:
        """Read on."""

    def abort(self) -> None:
        """Close the socket at once."""


class PlainAnswer:
    """One answer, filled by its connection and emptied by whoever asked, of whom one may wait at a time."""

    __slots__ = ("_carrier", "_ended", "_error", "_held", "_held_bytes", "_loop", "_take", "_waiter", "head")

    def __init__(self, carrier: Carrier, loop: asyncio.AbstractEventLoop) -> None:
        """Begin before the first byte has come by `carrier`."""
        self._carrier = carrier
        self._loop = loop
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._take: Callable[[bytes], bool] | None = None
        self._waiter: asyncio.Future[bool] | None = None
        self._ended = False
        self._error: LostError | NotSentError | None = None
        self.head: AnswerHead | None = None

    # What whoever asked does.

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        return self._begun.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the end-to-end headers."""
        return self._begun.headers

    async def until_begun(self) -> None:
        """Wait for status and headers.

        Raises:
            NotSentError: the replica read no byte of the request.
            LostError: it may have, or its answer is not strict HTTP.
        """
        while self.head is None:
            if self._error is not None:
                raise self._error
            await self._news()

    async def read(self) -> bytes:
        """Return the next bytes of the body, `b""` at its end.

        Raises:
            LostError: the body ended before its framing says.
        """
        while not self._held:
            if self._error is not None:
                raise self._error
            if self._ended:
                return b""
            await self._news()
        return self._taken()

    async def deliver(self, take: Callable[[bytes], bool]) -> bool:
        """Give the body to `take` as it comes; False at its end, True when `take` wants no more for now.

        Raises:
            LostError: the body ended before its framing says.
        """
        while True:
            while self._held:
                if not take(self._taken()):
                    return True
            if self._error is not None:
                raise self._error
            if self._ended:
                return False
            self._take = take
            try:
                if await self._news():
                    return True
            finally:
                self._take = None

    def close(self) -> None:
        """End the exchange; the socket is closed unless the body has come to its end."""
        if not self._ended and self._error is None:
            self._carrier.abort()
            self.fail(LostError("the exchange was closed"))

    # What the connection does.

    def begin(self, head: AnswerHead) -> None:
        """Take status and headers."""
        self.head = head
        self._wake(paused=False)

    def push(self, piece: bytes) -> None:
        """Take the next bytes of the body."""
        take = self._take
        if take is None:
            self._held.append(piece)
            self._held_bytes += len(piece)
            if self._held_bytes > MOST_HELD_BYTES:
                self._carrier.pause()
            self._wake(paused=False)
            return
        try:
            if take(piece):
                return
        except Exception as error:  # noqa: BLE001 - whoever waits for the end is whom it concerns
            self._take = None
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_exception(error)
            return
        self._take = None
        self._carrier.pause()
        self._wake(paused=True)

    def finish(self) -> None:
        """Note the end of the body."""
        self._ended = True
        self._wake(paused=False)

    def fail(self, error: LostError | NotSentError) -> None:
        """Note why there is nothing more to come."""
        self._error = error
        self._wake(paused=False)

    @property
    def _begun(self) -> AnswerHead:
        if self.head is None:
            raise RuntimeError("the answer has not begun")
        return self.head

    def _taken(self) -> bytes:
        held = self._held
        taken = held[0] if len(held) == 1 else b"".join(held)
        held.clear()
        self._held_bytes = 0
        return taken

    async def _news(self) -> bool:
        """Wait for anything to happen; True when it is that `take` wants no more for now."""
        self._carrier.resume()
        waiter: asyncio.Future[bool] = self._loop.create_future()
        self._waiter = waiter
        try:
            return await waiter
        finally:
            self._waiter = None

    def _wake(self, *, paused: bool) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(paused)
