"""The connections of a listener: aiohttp's low-level server, with every error told under the contract.

What aiohttp leaves open is closed here: its own text errors with their banner and echo, a header that never ends, a
peer that vanished without a FIN, more connections than the process has descriptors for.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import HttpVersion10, HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import _ErrInfo

from llmshed.admission.reasons import Reason
from llmshed.config.server import ServerSettings
from llmshed.gateway.door.crowding import Places
from llmshed.gateway.door.unread import PatientHandler
from llmshed.gateway.door.vanished import probe_idle

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
ErrorAnswer = Callable[[Reason, str], web.Response]
"""Writes an error that arose before there was a request, from its reason and sentence."""

HEADER_TIMEOUT_SECONDS = 15.0
"""From the first byte of a request to the last of its headers; then the connection is closed."""
LINGER_SECONDS = 2.0
"""How long the rest of a refused body is read and dropped, so that its sender gets the answer and not a reset."""
SPOKEN_VERSIONS = frozenset({HttpVersion10, HttpVersion11})
_NOT_HTTP = "The bytes received are not an HTTP/1.1 request of one reading."


class GatewayRequest(web.BaseRequest):
    """A request whose answer carries no banner, and closes its connection when nothing more may be read from it.

    That is once the listener retires, and behind two kinds of request: aiohttp's parser takes the last trailer of a
    chunked one for a field of the next, and drops bytes that come together with the end of one that asks for another
    protocol.
    """

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        response.headers.popall("Server", None)
        if not isinstance(self.protocol, GatewayProtocol):
            return
        self.protocol.answering(self.content)
        if self.protocol.retiring or self._message.chunked or self._message.upgrade:
            response.force_close()
            response.headers["Connection"] = "close"


class ForeignRequest(GatewayRequest):
    """A request in a version of HTTP that is not spoken here; its answer is in one that is."""


class GatewayProtocol(PatientHandler):
    """One client connection."""

    __slots__ = ("_answered", "_body", "_door", "_head_bytes", "_header_timer")

    def __init__(self, manager: "GatewayServer", **settings: Any) -> None:
        super().__init__(manager, **settings)
        self._door = manager
        self._header_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._body: StreamReader = EMPTY_PAYLOAD
        self._answered: StreamReader = EMPTY_PAYLOAD

    @property
    def retiring(self) -> bool:
        """Say whether the listener takes its last requests."""
        return self._door.retiring

    @property
    def idle(self) -> bool:
        """Say whether the connection waits for its next request."""
        return self._waiter is not None and not self._waiter.done() and not self._messages

    @property
    def may_go(self) -> bool:
        """Say whether the connection carries no request; its first may not have come yet."""
        return self.idle or self._request_count == 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, unless there are as many as the process can serve, all at work."""
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in {socket.AF_INET, socket.AF_INET6}:
            probe_idle(sock)
        self._door.places.take(self)

    def data_received(self, data: bytes) -> None:
        """Parse what came; headers that are still incomplete after it start the header timer, and have a bound."""
        super().data_received(data)
        if self._messages:
            self._look_at(*self._messages[-1])
        # The first bytes may come before aiohttp's task waits for them; no request was parsed then.
        if not self.idle and self._request_count > 0:
            self._stop_header_timer()
            self._head_bytes = 0
            return
        if self._header_timer is None:
            self._header_timer = self._loop.call_later(HEADER_TIMEOUT_SECONDS, self.force_close)
        self._head_bytes += len(data)
        if self._head_bytes > self._door.most_head_bytes:
            self._refuse_head()

    def answering(self, body: StreamReader) -> None:
        """Note that the answer to the request of this body begins; what is broken of it is not waited for."""
        if self.transport is not None:
            self._answered = body
        if (broken := body.exception()) is not None:
            broken.__traceback__ = None  # it leads to the frames of those who read, which hold the body
            body.feed_eof()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the timer with the connection, its place, and the bodies, which refer to it."""
        self._stop_header_timer()
        self._door.places.leave(self)
        super().connection_lost(exc)
        self._body = self._answered = EMPTY_PAYLOAD

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - aiohttp's sentence, which may quote the input
    ) -> web.StreamResponse:
        """Tell an error that no handler caught, in the contract's words and without an echo of the input.

        Raises:
            ConnectionError: part of an answer was sent already, so that no other can be.
        """
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was begun; the connection ends with it")
        response = self._door.error_answer(*_reading(status, exc))
        response.force_close()
        return response

    def _look_at(self, message: RawRequestMessage | _ErrInfo, body: StreamReader) -> None:
        """Let whoever waits for a body know that its framing broke; aiohttp tells only those who come after it."""
        if not isinstance(message, _ErrInfo):
            self._body = body
            return
        message.exc.__traceback__ = None  # it leads to aiohttp's frame, which holds the message and this connection
        if self._body.is_eof():
            return
        if self._body is self._answered:  # its rest is being dropped, and now has no end
            self.force_close()
        else:
            self._body.set_exception(web.RequestPayloadError())

    def _refuse_head(self) -> None:
        """Answer a head of more bytes than may be held; aiohttp bounds its lines and their number, not their sum."""
        self._request_count += 1
        self._messages.append((_ErrInfo(400, LineTooLong(b"", self._door.most_head_bytes), ""), EMPTY_PAYLOAD))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None


class GatewayServer(web.Server):
    """The factory of one listener's connections."""

    def __init__(self, handler: Handler, settings: ServerSettings, error_answer: ErrorAnswer, places: Places) -> None:
        """Bind the handler to its limits; a client that leaves cancels its handler.

        The parser's bounds are twice those that `gates` holds: most excess is then told in the route's own dialect.
        """
        super().__init__(self._handle, request_factory=self._request, handler_cancellation=True)
        self._handler = handler
        self.error_answer = error_answer
        self.places = places
        self.most_head_bytes = 2 * settings.max_header_bytes
        self.retiring = False
        self._protocol_settings: dict[str, Any] = {
            "keepalive_timeout": settings.keepalive_seconds,
            "write_stall_seconds": settings.write_stall_seconds,
            "lingering_time": LINGER_SECONDS,
            "access_log": None,
            "max_headers": 2 * settings.max_headers,
            "max_line_size": settings.max_header_bytes,
            "max_field_size": settings.max_header_bytes,
            "auto_decompress": False,
        }

    def __call__(self) -> GatewayProtocol:
        """Return the protocol of a new connection."""
        return GatewayProtocol(self, loop=self._loop, **self._protocol_settings)

    def transports(self) -> list[asyncio.Transport]:
        """Return the connections that are open."""
        return [one.transport for one in self.connections if one.transport is not None]

    def close_idle(self) -> None:
        """Close the connections that carry no request."""
        for connection in self.connections:
            if isinstance(connection, GatewayProtocol) and connection.idle:
                connection.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Hand on what is HTTP/1.0 or 1.1; the parser lets versions through that have other framings."""
        if not isinstance(request, ForeignRequest):
            connection = request.protocol
            try:
                return await self._handler(request)
            finally:
                if isinstance(connection, GatewayProtocol):
                    self.places.worked(connection)
        response = self.error_answer(Reason.MALFORMED, _NOT_HTTP)
        response.force_close()
        return response

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        if message.version in SPOKEN_VERSIONS:
            return GatewayRequest(message, payload, protocol, writer, task, self._loop)
        message = message._replace(version=HttpVersion10)
        return ForeignRequest(message, payload, protocol, writer, task, self._loop)


def _reading(status: int, exc: BaseException | None) -> tuple[Reason, str]:
    """Tell aiohttp's errors apart without repeating a byte of what was sent."""
    if isinstance(exc, LineTooLong):
        return Reason.HEADERS_TOO_LARGE, "The request line or a header is longer than this endpoint accepts."
    if isinstance(exc, BadHttpMessage) and exc.message.startswith("Too many headers"):
        return Reason.HEADERS_TOO_LARGE, "The request has more headers than this endpoint accepts."
    if status < 500:
        return Reason.MALFORMED, _NOT_HTTP
    return Reason.INTERNAL_ERROR, "The gateway failed on this request; its log has the details."
