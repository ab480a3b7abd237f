"""Server-sent events, byte for byte as axum writes them."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import orjson
from aiohttp import web

from llmshed.emulator.gate import Gate
from llmshed.emulator.replica import Replica

KEEP_ALIVE = b":\n\n"
DONE = b"[DONE]"
T = TypeVar("T")


class EventStream:
    """One answer of events; a context manager that sends the head first and ends the body unless it fails."""

    def __init__(self, replica: Replica, request: web.Request, headers: dict[str, str], gate: Gate) -> None:
        """Prepare an answer with these headers."""
        self._replica = replica
        self._request = request
        self._gate = gate
        head = {"content-type": "text/event-stream", "cache-control": "no-cache", **headers}
        self.response = web.StreamResponse(headers=head)

    async def __aenter__(self) -> Self:
        await self._gate.before_answer()
        await self.response.prepare(self._request)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.response.write_eof()

    async def during(self, wait: Callable[[], Awaitable[T]]) -> T:
        """Wait for something, with a comment after each silence; `wait` is called anew after it."""
        while True:
            try:
                async with asyncio.timeout(self._replica.settings.keep_alive_seconds):
                    return await wait()
            except TimeoutError:
                await self.response.write(KEEP_ALIVE)

    async def event(self, value: Any) -> None:
        """Send one event of JSON."""
        await self._send(orjson.dumps(value))

    async def done(self) -> None:
        """Send OpenAI's end mark, where this version does."""
        if self._replica.wire.done:
            await self._send(DONE)

    async def _send(self, data: bytes) -> None:
        await self.response.write(self._replica.wire.data_field + data + b"\n\n")
        await self._gate.after_event()
