"""The driver of a pure machine: what happens is told in order, what it wants is done, the end closes everything."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from llmshed.admission.signals.readings import ReplicaReading
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
    StopReason,
    Woken,
)
from llmshed.clock import SystemClock
from llmshed.errors import EngineError, PromptError
from llmshed.loadtest.driver import run
from llmshed.workload.asks import Ask, Outcome, Sample

DONE = Stop(StopReason.DONE, "done")
READING = ReplicaReading(1.0, queued_requests=0.0)


def ask(name: str) -> Ask:
    return Ask(name, 10, 10, runs_to_ceiling=True, lane=None)


@dataclass
class Scripted:
    """A machine that answers each event as it was told to, and keeps all."""

    answer: Callable[[Event], list[Action]]
    wakeup: Callable[[], float | None] = lambda: None
    seen: list[Event] = field(default_factory=list)

    def handle(self, event: Event, now: float) -> list[Action]:
        assert now > 0
        self.seen.append(event)
        return self.answer(event)

    def next_wakeup(self) -> float | None:
        return self.wakeup()


class Sender:
    """Answers at once; asks named `slow` never, `bad` not at all."""

    def __init__(self, *, tells: bool = True) -> None:
        self.tells = tells
        self.closed: list[str] = []

    async def carry(self, one: Ask, planned_at: float, on_first_token: Callable[[], None]) -> Sample:
        if one.id == "bad":
            raise PromptError("no such prompt")
        try:
            if one.id.startswith("slow"):
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.closed.append(one.id)
            return Sample(one, planned_at, planned_at, (), planned_at, Outcome.CANCELLED, None, 0)
        on_first_token()
        return Sample(one, planned_at, planned_at, (planned_at,), planned_at, Outcome.FINISHED, 200, 1)

    async def read(self) -> ReplicaReading:
        if not self.tells:
            raise EngineError("nobody")
        return READING


async def driven(machine: Scripted, sender: Sender) -> Stop | None:
    async with asyncio.timeout(10):
        return await run(machine, sender, SystemClock())


async def test_an_ask_is_told_from_its_first_token_to_its_end() -> None:
    def answer(event: Event) -> list[Action]:
        match event:
            case Begun():
                return [Send(ask("a"))]
            case Answered():
                return [ReadMetrics()]
            case Read():
                return [DONE]
            case _:
                return []

    machine = Scripted(answer)
    assert await driven(machine, Sender()) == DONE
    begun, first, answered, read = machine.seen
    assert (begun, first, read) == (Begun(READING), FirstToken("a"), Read(READING))
    assert isinstance(answered, Answered)
    assert answered.sample.outcome is Outcome.FINISHED


async def test_a_replica_that_tells_nothing_is_begun_without_a_reading_and_read_in_silence() -> None:
    wakeups = [SystemClock().now()]
    machine = Scripted(lambda event: [ReadMetrics()] if isinstance(event, Begun) else [DONE], lambda: wakeups[0] + 0.01)
    assert await driven(machine, Sender(tells=False)) == DONE
    assert machine.seen == [Begun(None), Woken()]


@pytest.mark.parametrize("started", [False, True])
async def test_a_cancelled_ask_is_answered_as_cancelled_whether_it_was_sent_yet_or_not(started: bool) -> None:  # noqa: FBT001 - a case
    def answer(event: Event) -> list[Action]:
        match event:
            case Begun():
                return [Send(ask("slow")), *([] if started else [Cancel("slow")])]
            case Woken():
                return [Cancel("slow"), Cancel("gone")]
            case Answered():
                return [DONE]
            case _:
                return []

    soon = SystemClock().now() + 0.01
    machine, sender = Scripted(answer, lambda: soon if started else None), Sender()
    assert await driven(machine, sender) == DONE
    (answered,) = (event for event in machine.seen if isinstance(event, Answered))
    assert (answered.sample.outcome, answered.sample.ask.id) == (Outcome.CANCELLED, "slow")
    assert sender.closed == (["slow"] if started else [])


async def test_stop_closes_what_is_in_flight_and_tells_of_it() -> None:
    machine, sender = (
        Scripted(lambda event: [Send(ask("a")), Send(ask("slow"))] if isinstance(event, Begun) else [DONE]),
        Sender(),
    )
    assert await driven(machine, sender) == DONE
    assert {event.sample.ask.id for event in machine.seen if isinstance(event, Answered)} == {"a", "slow"}
    assert sender.closed == ["slow"]


async def test_an_end_from_outside_keeps_what_was_measured() -> None:
    machine, sender = Scripted(lambda event: [Send(ask("slow"))] if isinstance(event, Begun) else []), Sender()
    running = asyncio.ensure_future(driven(machine, sender))
    async with asyncio.timeout(10):
        while not machine.seen:  # noqa: ASYNC110 - the machine is told by the driver alone
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        running.cancel()
        assert await running is None
    assert [event.sample.outcome for event in machine.seen if isinstance(event, Answered)] == [Outcome.CANCELLED]


async def test_what_cannot_be_sent_ends_the_run_with_its_error() -> None:
    machine, sender = (
        Scripted(lambda _: [Send(ask("slow")), Send(ask("bad"))] if len(machine.seen) == 1 else []),
        Sender(),
    )
    with pytest.raises(PromptError, match="no such prompt"):
        await driven(machine, sender)
    assert sender.closed == ["slow"]
