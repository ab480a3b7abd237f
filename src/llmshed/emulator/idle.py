"""The fault that closes kept-alive connections while they are idle."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web
from aiohttp.web_protocol import RequestHandler


class IdleCloser:
    """Closes a connection some time after its last answer, unless it has begun another one by then."""

    def __init__(self) -> None:
        """Start without connections."""
        self._begun: dict[RequestHandler, int] = {}

    @contextmanager
    def around(self, request: web.Request, seconds: float | None) -> Iterator[None]:
        """Arm the fault around the handling of a request; None leaves the connection alone."""
        if seconds is None:
            yield
            return
        protocol = request.protocol
        number = self._begun[protocol] = self._begun.get(protocol, 0) + 1
        try:
            yield
        finally:
            asyncio.get_running_loop().call_later(seconds, self._close, protocol, number)

    def _close(self, protocol: RequestHandler, number: int) -> None:
        if self._begun.get(protocol) != number:
            return
        del self._begun[protocol]
        if protocol.transport is not None:
            protocol.transport.close()
