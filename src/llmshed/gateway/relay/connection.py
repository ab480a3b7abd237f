"""One connection to a replica: a request out, its answer's bytes to whoever asked, and then it is free again."""

import asyncio
from collections.abc import Callable
from typing import cast

from llmshed.gateway.relay.answer_parser import AnswerParser
from llmshed.gateway.relay.plain_answer import PlainAnswer
from llmshed.gateway.relay.replica_socket import notice_vanished_host
from llmshed.gateway.relay.upstream import LostError, NotSentError
from llmshed.gateway.relay.witness import Witness
from llmshed.gateway.relay.words import CLOSED, CUT_SHORT, told

ONE_WRITE_BYTES = 64 * 1024
"""Bodies up to this size are copied behind their headers, to leave in one write."""


class Connection(asyncio.Protocol):
    """Carries one exchange at a time.

    Args:
        loop: the running loop.
        on_free: is told when an answer has ended and another request may be sent.
        on_gone: is told when the connection has ended.
    """

    __slots__ = (
        "_answer",
        "_loop",
        "_on_free",
        "_on_gone",
        "_parser",
        "_paused",
        "_transport",
        "_witness",
        "free_since",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_free: Callable[["Connection"], None],
        on_gone: Callable[["Connection"], None],
    ) -> None:
        """Wait to be connected."""
        self._loop = loop
        self._on_free = on_free
        self._on_gone = on_gone
        self._transport: asyncio.Transport | None = None
        self._answer: PlainAnswer | None = None
        self._paused = False
        self._witness = Witness()
        self.free_since = 0.0

    @property
    def is_usable(self) -> bool:
        """Say whether a request may be sent."""
        return self._answer is None and self._transport is not None and not self._transport.is_closing()

    def ask(self, head: bytes, body: bytes | None) -> PlainAnswer:
        """Write a request, and return its answer, of which nothing has come yet."""
        transport = self._transport
        if transport is None:
            raise RuntimeError("a connection that is not open was asked")
        self._witness.request_begins(transport)
        self._parser = AnswerParser(self._loop)
        answer = self._answer = PlainAnswer(self, self._loop)
        if body is None:
            transport.write(head)
        elif len(body) <= ONE_WRITE_BYTES:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        return answer

    def pause(self) -> None:
        """Read no more from the replica for now."""
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._paused:
            self._paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    def abort(self) -> None:
        """Close the socket at once; whoever waits for an answer has been told, or does not wait any more."""
        self._answer = None
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Close the socket at once and tell whoever waits for an answer."""
        answer = self._answer
        self.abort()
        if answer is not None:
            answer.fail(LostError("the gateway closed the connection"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self._transport = cast("asyncio.Transport", transport)
        notice_vanished_host(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        """Hand on what came of the answer; bytes that nobody asked for end the connection."""
        answer = self._answer
        if answer is None:
            self.abort()
            return
        parser = self._parser
        piece = parser.feed(data)
        if answer.head is None and parser.head is not None:
            answer.begin(parser.head)
        if piece:
            answer.push(piece)
        if parser.over and self._answer is answer:  # else it was closed by whom it was handed to
            self._end(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits what is known of the loss."""
        self._witness.connection_lost(self._transport, exc)
        self._transport = None
        self._on_gone(self)
        answer, self._answer = self._answer, None
        if answer is None:
            return
        if answer.head is None:
            answer.fail(self._unanswered(exc))
            return
        if exc is None:
            self._parser.end()
        if self._parser.over and self._parser.fault is None:
            answer.finish()
        else:
            answer.fail(LostError(f"the replica broke off its answer: {CUT_SHORT}"))

    def _end(self, answer: PlainAnswer) -> None:
        self._answer = None
        parser = self._parser
        if parser.reusable and self.is_usable:
            self.resume()
            self._on_free(self)
        else:
            self.abort()
        if parser.fault is None:
            answer.finish()
        elif answer.head is None:
            answer.fail(LostError(f"the replica was lost before it answered: {parser.fault}"))
        else:
            answer.fail(LostError(f"the replica broke off its answer: {parser.fault}"))

    def _unanswered(self, error: Exception | None) -> LostError | NotSentError:
        if self._witness.left_unread:
            return NotSentError("the replica closed the connection before it read the request")
        return LostError(f"the replica was lost before it answered: {CLOSED if error is None else told(error)}")
