"""The upstream client on aiohttp: pooled connections, strict framing, and proof of what a lost replica has read."""

import asyncio
import contextlib
import functools
import socket
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import aiohttp
from aiohttp import AddrInfoType
from aiohttp.client_proto import ResponseHandler

from llmshed.config.server import UpstreamSettings
from llmshed.gateway.relay.framing import end_to_end, framing_fault
from llmshed.gateway.relay.replica_socket import notice_vanished_host
from llmshed.gateway.relay.upstream import LostError, NotSentError, ScopedUpstream
from llmshed.gateway.relay.witness import Witness
from llmshed.gateway.relay.words import CLOSED, CUT_SHORT, NO_NAME, NOT_HTTP, told

_REQUEST_HEADERS = {"User-Agent": "llmshed", "Accept-Encoding": "identity"}


class _WitnessedConnection(ResponseHandler):
    """A connection that knows, when it is lost, whether the replica can have read any byte of the present request."""

    used = False
    reused = False

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.witness = Witness()

    def begin_request(self) -> None:
        self.reused = self.used
        self.used = True
        self.witness.request_begins(self.transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.witness.connection_lost(self.transport, exc)
        super().connection_lost(exc)


class _Attempt:
    """One try to send a request; the connector tells it which connection it got."""

    def __init__(self, on_connected: Callable[[], None] | None) -> None:
        self._on_connected = on_connected
        self.connection: _WitnessedConnection | None = None

    def connected(self, connection: ResponseHandler | None) -> None:
        if isinstance(connection, _WitnessedConnection):
            connection.begin_request()
            self.connection = connection
        if self._on_connected is not None:
            self._on_connected()

    def abort(self) -> None:
        if self.connection is not None:
            self.connection.abort()


_attempt: ContextVar[_Attempt] = ContextVar("_attempt")


class _Connector(aiohttp.TCPConnector):
    """A connector of witnessed connections."""

    def __init__(self, pool_idle_seconds: float | None) -> None:
        """Keep idle connections for a time; None makes a new connection for each request."""
        pooling = {"force_close": True} if pool_idle_seconds is None else {"keepalive_timeout": pool_idle_seconds}
        super().__init__(limit=0, socket_factory=_replica_socket, **pooling)
        factory: Any = functools.partial(_WitnessedConnection, loop=self._loop)  # aiohttp types its own exact class
        self._factory = factory

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[aiohttp.tracing.Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the signature is aiohttp's
    ) -> aiohttp.connector.Connection:
        connection = await super().connect(req, traces, timeout)
        _attempt.get().connected(connection.protocol)
        return connection


def _replica_socket(address: AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    notice_vanished_host(made)
    return made


class AiohttpAnswer:
    """An answer over aiohttp."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        """Take over a response whose headers have come."""
        self._response = response
        self._headers = end_to_end(response.headers)

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the end-to-end headers."""
        return self._headers

    async def read(self) -> bytes:
        """Return the next bytes of the body, `b""` at its end.

        Raises:
            LostError: the body ended before its framing says.
        """
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise LostError(f"the replica broke off its answer: {_told(error)}") from error

    async def deliver(self, take: Callable[[bytes], bool]) -> bool:
        """Give the next bytes to `take` as they come; False at the end of the body, True when it wants no more for now.

        Raises:
            LostError: the body ended before its framing says.
        """
        while piece := await self.read():
            if not take(piece):
                return True
        return False

    def close(self) -> None:
        """Abort the socket unless the body was read to its end, in which case the connection is pooled already."""
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()


class AiohttpUpstream(ScopedUpstream):
    """An `UpstreamClient` on aiohttp.

    The connector has no limit of its own, because the ledger is the limit: requests beyond it would wait unseen. There
    is no total time limit, since a stream may last for hours. Redirects, proxies of the environment, cookies and
    decompression are off.
    """

    def __init__(self, settings: UpstreamSettings) -> None:
        """Open the session; needs a running event loop."""
        self._pooled = _session(settings, settings.pool_idle_seconds)
        self._fresh = _session(settings, None)

    async def send(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        on_connected: Callable[[], None] | None = None,
    ) -> AiohttpAnswer:
        """Send one request and wait for status and headers.

        A pooled connection that proves to have been closed under the request is replaced once, by a new connection: the
        rest of the pool may be as stale.

        Raises:
            NotSentError: the replica read no byte.
            LostError: it may have, or its answer is not strict HTTP.
        """
        attempt = _Attempt(on_connected)
        try:
            with _witnessed(attempt):
                return await _exchange(self._pooled, url, body, headers)
        except NotSentError:
            if attempt.connection is None or not attempt.connection.reused:
                raise
        with _witnessed(_Attempt(on_connected)):
            return await _exchange(self._fresh, url, body, headers)

    async def close(self) -> None:
        """Close every connection."""
        await self._pooled.close()
        await self._fresh.close()


def _session(settings: UpstreamSettings, pool_idle_seconds: float | None) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=_Connector(pool_idle_seconds),
        timeout=aiohttp.ClientTimeout(
            total=None, connect=settings.connect_timeout_seconds, sock_connect=settings.connect_timeout_seconds
        ),
        auto_decompress=False,
        trust_env=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=_REQUEST_HEADERS,
    )


async def _exchange(
    session: aiohttp.ClientSession, url: str, body: bytes | None, headers: Mapping[str, str]
) -> AiohttpAnswer:
    response = await session.request(
        "GET" if body is None else "POST", url, data=body, headers=headers, allow_redirects=False
    )
    if (fault := framing_fault(response.headers)) is not None:
        response.close()
        raise LostError(f"the replica's answer {fault}")
    return AiohttpAnswer(response)


@contextlib.contextmanager
def _witnessed(attempt: _Attempt) -> Iterator[None]:
    """Turn what goes wrong in one try into what is known about it; the socket is gone in every such case."""
    token = _attempt.set(attempt)
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:
        attempt.abort()
        if attempt.connection is None:
            raise NotSentError(f"the replica cannot be reached: {_told(error)}") from error
        if attempt.connection.witness.left_unread:
            raise NotSentError("the replica closed the connection before it read the request") from error
        raise LostError(f"the replica was lost before it answered: {_told(error)}") from error
    except BaseException:
        attempt.abort()
        raise
    finally:
        _attempt.reset(token)


_WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (aiohttp.ClientSSLError, "no TLS connection with it can be trusted"),
    (aiohttp.ClientConnectorDNSError, NO_NAME),
    (aiohttp.ServerDisconnectedError, CLOSED),
    (aiohttp.ClientPayloadError, CUT_SHORT),
    (aiohttp.ClientResponseError, NOT_HTTP),
)


def _told(error: BaseException) -> str:
    for kind, words in _WORDS:
        if isinstance(error, kind):
            return words
    return told(error)
