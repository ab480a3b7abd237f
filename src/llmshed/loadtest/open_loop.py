"""The open loop: each request is sent at its planned instant, whatever became of the others.

A refused one is sent again as its client would, and stays one visit: its waits count from the first planned instant.
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from llmshed.loadtest.ahead import Ahead, Written
from llmshed.loadtest.exchange import NO_FILES
from llmshed.workload.clients import ClientModel, retry_wait_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from llmshed.engines.base import EngineRequest
    from llmshed.loadtest.client import Client
    from llmshed.loadtest.exchange import Exchange
    from llmshed.loadtest.meter import Meter
    from llmshed.loadtest.plan import Planned
    from llmshed.loadtest.replies import Reply

MOST_IN_FLIGHT: Final = 10_000
"""Requests open at once; what is due then waits, and the result says so."""
HEAD_START_SECONDS: Final = 0.05
_TIMER_SECONDS: Final = 0.001
"""Resolution of an event loop's timers; the rest is waited turn by turn."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A request with all its tries.

    Args:
        planned_at: instant at which the first try was due.
        replies: of each try; at least one.
    """

    planned_at: float
    replies: "tuple[Reply, ...]"

    @property
    def last(self) -> "Reply":
        """Return what came of it in the end."""
        return self.replies[-1]

    @property
    def ttft_seconds(self) -> float | None:
        """Return the time to the first token of its answer, from when the first try was due."""
        times = self.last.sample.token_times
        return times[0] - self.planned_at if times else None


class OpenLoop:
    """Sends a plan.

    Args:
        client: target and form of the requests.
        meter: what its own faults are counted by.
        clients: what is done after a refusal.
        rng: what clients draw their jitter from.
        ended: is given each visit when it is over, those that were cancelled too.
    """

    def __init__(
        self, client: "Client", meter: "Meter", clients: ClientModel, rng: "Random", ended: "Callable[[Visit], None]"
    ) -> None:
        self._client = client
        self._meter = meter
        self._clients = clients
        self._rng = rng
        self._ended = ended
        self._seats = asyncio.Semaphore(MOST_IN_FLIGHT)
        self.started_at: float | None = None
        self.sent = 0

    async def run(self, planned: "Iterator[Planned]") -> None:
        """Send all that is planned and wait for every end; cancelled, it closes what runs and tells of that too.

        Raises:
            LlmshedError: the plan cannot be read on, or a prompt not be made.
        """
        ahead = Ahead(planned, self._write)
        try:
            async with asyncio.TaskGroup() as visits:
                filling = visits.create_task(ahead.fill())
                watching = visits.create_task(self._meter.watch())
                await ahead.until_enough()
                start = self.started_at = self._client.clock.now() + HEAD_START_SECONDS
                async with asyncio.TaskGroup() as running:
                    async for written in ahead.take():
                        await self._until(start + written.planned.at_seconds)
                        await self._seat()
                        running.create_task(self._visit(written, start + written.planned.at_seconds))
                        self.sent += 1
                filling.cancel()
                watching.cancel()
        except BaseExceptionGroup as group:
            raise _first(group) from None

    def _write(self, planned: "Planned") -> "EngineRequest":
        ask = planned.ask
        text = self._client.prompts.text(ask.id, ask.input_tokens, planned.parts)
        return self._client.wire.request(ask, text)

    async def _until(self, instant: float) -> None:
        """Wait until an instant, more closely than a timer can: the last millisecond goes turn by turn."""
        now = self._client.clock.now
        if (left := instant - now()) > _TIMER_SECONDS:
            await asyncio.sleep(left - _TIMER_SECONDS)
        while now() < instant:  # noqa: ASYNC110 - shorter than any event's timer
            await asyncio.sleep(0)

    async def _seat(self) -> None:
        if self._seats.locked():
            self._meter.held_back()
        await self._seats.acquire()

    async def _visit(self, written: Written, planned_at: float) -> None:
        replies: list[Reply] = []
        due = planned_at
        try:
            while True:
                exchange = self._client.exchange(written.planned.ask, due, tries=len(replies))
                await self._tried(exchange, written, replies)
                wait = self._wait(replies[-1])
                if wait is None:
                    break
                due = self._client.clock.now() + wait
                await asyncio.sleep(wait)
        finally:
            self._seats.release()
            self._ended(Visit(planned_at, tuple(replies)))

    async def _tried(self, exchange: "Exchange", written: Written, replies: "list[Reply]") -> None:
        headers = dict(written.planned.headers)
        if self._clients is ClientModel.SDK:
            headers["x-stainless-retry-count"] = str(len(replies))
        try:
            await self._client.carry_out(exchange, written.request, headers)
        finally:
            reply = exchange.reply()
            replies.append(reply)
            self._meter.sent(reply.sample.sent_at - reply.sample.planned_at)
            if reply.reason == NO_FILES:
                self._meter.out_of_files()

    def _wait(self, reply: "Reply") -> float | None:
        refusal = reply.refusal()
        return None if refusal is None else retry_wait_seconds(self._clients, refusal, reply.tries, self._rng)


def _first(group: "BaseExceptionGroup[BaseException]") -> BaseException:
    """Return the one error that a group of tasks ended by; what the others were cancelled with is none."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
