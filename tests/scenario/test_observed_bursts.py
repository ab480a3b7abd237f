"""A burst before both modes: observe tells exactly what enforcing refuses."""

import asyncio
import random
from abc import ABC, abstractmethod
from itertools import count

import pytest

from fakes.door import door, request, spec
from fakes.scripted_core import HandClock
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Request
from llmshed.admission.verdict import Verdict
from llmshed.gateway.driver import Driver
from llmshed.gateway.observing import Observing
from llmshed.gateway.ticket import Ticket

SMALL = [spec(name, gross_ceiling_tokens=2_000, release_grace_seconds=0.0) for name in ("r1", "r2")]


def never(verdict: Verdict) -> None:
    raise AssertionError(f"nobody waits, and one is told {verdict}")


class Gate(ABC):
    """A gateway of two replicas of 2,000 tokens each, on a clock that the test moves."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.driver = Driver(door(*SMALL), self.clock)

    async def burst(self, seed: int) -> None:
        """Let requests for 3 times both budgets arrive in one instant."""
        drawn = random.Random(seed)  # noqa: S311 - sizes of requests
        offered = 0
        for key in count(1):
            arriving = request(key, drawn.randrange(50, 700), drawn.randrange(50, 400))
            offered += sum(arriving.prompt_tokens) + (arriving.asked_output_tokens or 0)
            await self.arrives(arriving)
            if offered > 3 * 2 * 1_800:
                return

    async def until_all_is_settled(self) -> None:
        """End the oldest running request every 50 ms, until nothing runs or waits."""
        while running := self.running():
            self.clock.at += 0.05
            self.driver._tick()
            await asyncio.sleep(0)
            oldest = min(running)
            running[oldest].finished(1)
            for _ in range(3):
                await asyncio.sleep(0)
        assert self.driver.charged == 0
        assert self.driver.violations() == ()

    @abstractmethod
    async def arrives(self, arriving: Request) -> None: ...

    @abstractmethod
    def running(self) -> dict[int, Ticket]: ...


class EnforcingGate(Gate):
    """Its requests wait while they are queued."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[int, asyncio.Task[Ticket | Verdict]] = {}

    async def arrives(self, arriving: Request) -> None:
        self.answers[arriving.key] = asyncio.ensure_future(self.driver.admit(arriving))
        for _ in range(3):
            await asyncio.sleep(0)

    def running(self) -> dict[int, Ticket]:
        answers = {key: task.result() for key, task in self.answers.items() if task.done()}
        return {key: one for key, one in answers.items() if isinstance(one, Ticket) and one.is_open}

    def refused(self) -> dict[int, Reason | None]:
        answers = {key: task.result() for key, task in self.answers.items() if task.done()}
        return {key: one.reason for key, one in answers.items() if isinstance(one, Verdict)}


class ObservingGate(Gate):
    """All its requests run; those end first that the core has charged."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Observing(self.driver, lambda _: SMALL)
        self.tickets: dict[int, Ticket] = {}

    async def arrives(self, arriving: Request) -> None:
        ticket = await self.desk.admit(arriving, never)
        assert isinstance(ticket, Ticket)
        self.tickets[arriving.key] = ticket

    def running(self) -> dict[int, Ticket]:
        return {key: self.tickets[key] for key, one in self.desk._passages.items() if one.holds_charge}

    def would_be_refused(self) -> dict[int, Reason | None]:
        told = {key: ticket.would.reason for key, ticket in self.tickets.items() if ticket.would is not None}
        return {key: reason for key, reason in told.items() if reason is not None}


@pytest.mark.parametrize("seed", range(5))
async def test_a_burst_of_three_times_the_budget_is_told_exactly_what_enforcing_refuses(seed: int) -> None:
    enforcing, observing = EnforcingGate(), ObservingGate()
    await enforcing.burst(seed)
    await observing.burst(seed)
    assert observing.would_be_refused() == enforcing.refused()
    await enforcing.until_all_is_settled()
    await observing.until_all_is_settled()
    assert observing.would_be_refused() == enforcing.refused()
    assert set(observing.tickets) == set(enforcing.answers)
    assert observing.driver.uncharged == observing.driver.live == len(enforcing.refused()) > 0
    for key in enforcing.refused():
        observing.tickets[key].finished(1)
    assert observing.driver.live == enforcing.driver.live == 0
