"""Where faults meet one request."""

import asyncio

from aiohttp import web

from llmshed.emulator.engine import Engine
from llmshed.emulator.faults import FaultPlan


class Gate:
    """Passed by a request before its answer begins and after each event or token of it."""

    def __init__(self, plan: FaultPlan, request: web.Request, engine: Engine) -> None:
        """Take the faults that this request meets."""
        self._plan = plan
        self._request = request
        self._engine = engine
        self._events = 0

    @property
    def refused(self) -> bool:
        """Say whether the request is to find no permit."""
        return self._plan.overloaded

    async def before_answer(self) -> None:
        """Delay the first byte, or die before it."""
        if self._plan.first_byte_delay_seconds:
            await asyncio.sleep(self._plan.first_byte_delay_seconds)
        if self._plan.die_after_events == 0:
            await self._die()

    async def after_event(self) -> None:
        """Count an event, and do what is due after it."""
        self._events += 1
        if self._events == self._plan.fail_after_events:
            self._engine.fail_batch("CUDA out of memory")
        if self._events == self._plan.die_after_events:
            await self._die()
        if self._events == self._plan.stall_after_events:
            await _until_cancelled()

    async def _die(self) -> None:
        if self._request.transport is not None:
            self._request.transport.abort()
        await _until_cancelled()


async def _until_cancelled() -> None:
    """Wait for the connection to be lost, which cancels the handler."""
    await asyncio.Event().wait()
