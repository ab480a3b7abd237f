"""Runs a pure machine that decides what to send, such as a calibration, against a real replica.

The machine knows no clock and no socket: this reads the one, uses the other, and tells what happened. Its events are
told one at a time, in the order in which they came; an ask's instant is that of the `handle` that returned it.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, assert_never

from llmshed.calibration.events import (
    Action,
    Answered,
    Begun,
    Cancel,
    Event,
    FirstToken,
    Read,
    ReadMetrics,
    Send,
    Stop,
    Woken,
)
from llmshed.errors import EngineError
from llmshed.workload.asks import Outcome, Sample

if TYPE_CHECKING:
    from llmshed.admission.signals.readings import ReplicaReading
    from llmshed.clock import Clock
    from llmshed.workload.asks import Ask


class Machine(Protocol):
    """What decides: events in, actions out."""

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take what happened and return what to do, in order."""

    def next_wakeup(self) -> float | None:
        """Return when to tell it `Woken`; None for not before something happens."""


class Sender(Protocol):
    """What makes requests of asks."""

    async def carry(self, ask: "Ask", planned_at: float, on_first_token: Callable[[], None]) -> Sample:
        """Send an ask and return what came of it.

        Cancelled once it was called, it closes the connection and returns the sample of a cancelled ask.
        """

    async def read(self) -> "ReplicaReading":
        """Read the replica's signals.

        Raises:
            EngineError: they cannot be read.
        """


async def run(machine: Machine, sender: Sender, clock: "Clock") -> Stop | None:
    """Drive a machine until it stops; return what it stopped with.

    Cancelled, it closes what is in flight, tells the machine of that as of any other end, and returns None: what was
    measured by then stands.
    """
    return await _Run(machine, sender, clock).whole()


class _Run:
    def __init__(self, machine: Machine, sender: Sender, clock: "Clock") -> None:
        self._machine = machine
        self._sender = sender
        self._clock = clock
        self._events: asyncio.Queue[Event | BaseException] = asyncio.Queue()
        self._asks: dict[str, asyncio.Task[Sample]] = {}
        self._reads: set[asyncio.Task[None]] = set()
        self._stopped: Stop | None = None

    async def whole(self) -> Stop | None:
        try:
            self._tell(Begun(await self._reading()))
            while self._stopped is None:
                self._tell(await self._next())
        except asyncio.CancelledError:
            return None
        finally:
            await self._close()
        return self._stopped

    def _tell(self, event: Event) -> None:
        now = self._clock.now()
        for action in self._machine.handle(event, now):
            self._perform(action, now)

    async def _next(self) -> Event:
        """Wait for what happens first: an event, or the instant at which the machine wants to be woken."""
        wakeup = self._machine.next_wakeup()
        if wakeup is None or not self._events.empty():
            event = await self._events.get()
        else:
            try:
                event = await asyncio.wait_for(self._events.get(), max(0.0, wakeup - self._clock.now()))
            except TimeoutError:
                return Woken()
        if isinstance(event, BaseException):
            raise event
        return event

    def _perform(self, action: Action, now: float) -> None:
        match action:
            case Send(ask):
                self._send(ask, now)
            case Cancel(ask_id):
                if (task := self._asks.get(ask_id)) is not None:
                    task.cancel()
            case ReadMetrics():
                reading = asyncio.get_running_loop().create_task(self._read())
                self._reads.add(reading)
                reading.add_done_callback(self._reads.discard)
            case Stop():
                self._stopped = action
            case _:
                assert_never(action)

    def _send(self, ask: "Ask", now: float) -> None:
        def first_token() -> None:
            self._events.put_nowait(FirstToken(ask.id))

        def ended(task: "asyncio.Task[Sample]") -> None:
            del self._asks[ask.id]
            if task.cancelled():  # before its first step, so that nothing was sent
                self._events.put_nowait(Answered(_never_sent(ask, now, self._clock.now())))
            else:
                self._events.put_nowait(task.exception() or Answered(task.result()))

        task = asyncio.get_running_loop().create_task(self._sender.carry(ask, now, first_token))
        self._asks[ask.id] = task
        task.add_done_callback(ended)

    async def _read(self) -> None:
        if (reading := await self._reading()) is not None:
            self._events.put_nowait(Read(reading))

    async def _reading(self) -> "ReplicaReading | None":
        try:
            return await self._sender.read()
        except EngineError:
            return None

    async def _close(self) -> None:
        """Close what is in flight; its ends are told to the machine, and what it wants then is not done."""
        tasks = [*self._asks.values(), *self._reads]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while not self._events.empty():
            event = self._events.get_nowait()
            if not isinstance(event, BaseException):
                self._machine.handle(event, self._clock.now())


def _never_sent(ask: "Ask", planned_at: float, now: float) -> Sample:
    return Sample(ask, planned_at, planned_at, (), now, Outcome.CANCELLED, None, 0, "closed before it was sent")
