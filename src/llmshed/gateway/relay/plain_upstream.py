"""The upstream client for replicas over plain HTTP: connections of our own, one read of a socket to one write."""

import asyncio
import functools
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from llmshed.config.server import UpstreamSettings
from llmshed.gateway.relay.connection import Connection
from llmshed.gateway.relay.names import Names
from llmshed.gateway.relay.plain_answer import PlainAnswer
from llmshed.gateway.relay.pool import ConnectionPool, Origin
from llmshed.gateway.relay.upstream import NotSentError, ScopedUpstream
from llmshed.gateway.relay.words import told

_UNWRITABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that no header value holds (RFC 9110, 5.5)."""


class _Target(NamedTuple):
    """A URL, taken apart: where to connect, and how a request to it begins."""

    origin: Origin
    get: str
    post: str


class PlainUpstream(ScopedUpstream):
    """An `UpstreamClient` on connections of our own, for `http:` alone.

    There is no limit on connections, because the ledger is the limit: requests beyond it would wait unseen. There is no
    time limit but that of connecting, since a stream may last for hours. Nothing is followed, decompressed or read from
    the environment.
    """

    def __init__(self, settings: UpstreamSettings) -> None:
        """Start without connections; needs a running event loop."""
        self._loop = asyncio.get_running_loop()
        self._connect_seconds = settings.connect_timeout_seconds
        self._pool = ConnectionPool(settings.pool_idle_seconds)
        self._names = Names()

    async def send(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        on_connected: Callable[[], None] | None = None,
    ) -> PlainAnswer:
        """Send one request and wait for status and headers.

        A pooled connection that proves to have been closed under the request is replaced once, by a new connection: the
        rest of the pool may be as stale.

        Raises:
            NotSentError: the replica read no byte.
            LostError: it may have, or its answer is not strict HTTP.
        """
        target = _target(url)
        head = _head(target, body, headers)
        pooled = self._pool.take(target.origin)
        if pooled is not None:
            try:
                return await _exchange(pooled, head, body, on_connected)
            except NotSentError:
                pass
        return await _exchange(await self._connected(target.origin), head, body, on_connected)

    async def close(self) -> None:
        """Close every connection."""
        self._pool.close()
        await asyncio.sleep(0)  # the loop tells the connections of their end

    async def _connected(self, origin: Origin) -> Connection:
        """Make a connection; each address of a name gets an equal part of the time that is left.

        Raises:
            NotSentError: none came about.
        """
        host, port = origin
        ends_at = self._loop.time() + self._connect_seconds
        error: OSError = TimeoutError()
        try:
            async with asyncio.timeout_at(ends_at):
                addresses = await self._names.addresses(host)
            for tried, address in enumerate(addresses):
                share_seconds = (ends_at - self._loop.time()) / (len(addresses) - tried)
                try:
                    return await self._dialled(origin, address, port, share_seconds)
                except OSError as failed:
                    error = failed
        except OSError as failed:
            error = failed
        raise NotSentError(f"the replica cannot be reached: {told(error)}") from error

    async def _dialled(self, origin: Origin, address: str, port: int, within_seconds: float) -> Connection:
        connection = self._pool.new(origin)
        try:
            async with asyncio.timeout(within_seconds):
                await self._loop.create_connection(lambda: connection, address, port)
        except BaseException:
            connection.abort()
            self._pool.forget(connection)
            raise
        return connection


async def _exchange(
    connection: Connection, head: bytes, body: bytes | None, on_connected: Callable[[], None] | None
) -> PlainAnswer:
    try:
        if on_connected is not None:
            on_connected()
        answer = connection.ask(head, body)
        await answer.until_begun()
    except BaseException:
        connection.abort()
        raise
    return answer


@functools.lru_cache(maxsize=1024)
def _target(url: str) -> _Target:
    """Take apart a URL of the configuration with a route behind it."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname is None:
        raise ValueError(f"{url} is not plain HTTP")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    rest = f"{path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: llmshed\r\nAccept-Encoding: identity\r\n"
    return _Target((parts.hostname, 80 if parts.port is None else parts.port), f"GET {rest}", f"POST {rest}")


def _head(target: _Target, body: bytes | None, headers: Mapping[str, str]) -> bytes:
    """Return the request line and the headers, with nothing among them that ends a line."""
    for name, value in headers.items():
        if _UNWRITABLE.search(name) or _UNWRITABLE.search(value):
            raise ValueError("a header of a request holds a control character")
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    text = f"{target.get}{lines}\r\n" if body is None else f"{target.post}{lines}Content-Length: {len(body)}\r\n\r\n"
    return text.encode("latin-1")
