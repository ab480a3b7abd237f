"""Requests written ahead of their time: in order, bounded, and told when there are enough."""

import asyncio
from collections.abc import Iterator

import pytest

from llmshed.engines.base import EngineRequest
from llmshed.errors import TraceError
from llmshed.loadtest.ahead import ENOUGH_SECONDS, MOST_READY, Ahead
from llmshed.loadtest.plan import Planned
from llmshed.workload.asks import Ask


def planned(count: int, gap_seconds: float = 0.0) -> Iterator[Planned]:
    for number in range(count):
        yield Planned(number * gap_seconds, Ask(str(number), 1, 1, runs_to_ceiling=False, lane=None), (), {})


def write(one: Planned) -> EngineRequest:
    return EngineRequest("/", one.ask.id.encode())


async def test_all_are_written_in_order() -> None:
    ahead = Ahead(planned(100), write)
    filling = asyncio.ensure_future(ahead.fill())
    await ahead.until_enough()
    assert [written.request.body async for written in ahead.take()] == [str(number).encode() for number in range(100)]
    await filling


async def test_no_more_are_kept_than_so_many() -> None:
    taken: list[int] = []

    def watched() -> Iterator[Planned]:
        for number, one in enumerate(planned(3 * MOST_READY)):
            taken.append(number)
            yield one

    ahead = Ahead(watched(), write)
    filling = asyncio.ensure_future(ahead.fill())
    await ahead.until_enough()
    await asyncio.sleep(0.02)
    assert MOST_READY <= len(taken) <= MOST_READY + 16
    assert len([one async for one in ahead.take()]) == 3 * MOST_READY
    await filling


async def test_a_stretch_of_the_plan_is_enough_to_begin() -> None:
    ahead = Ahead(planned(MOST_READY - 1, gap_seconds=ENOUGH_SECONDS), write)
    filling = asyncio.ensure_future(ahead.fill())
    await ahead.until_enough()
    first = await anext(ahead.take())
    assert first.planned.at_seconds == 0.0
    filling.cancel()


async def test_a_plan_that_breaks_is_told_after_what_came_before() -> None:
    def broken() -> Iterator[Planned]:
        yield from planned(11)
        raise TraceError("broken", 12)

    ahead = Ahead(broken(), write)
    await ahead.fill()
    taken = ahead.take()
    assert [(await anext(taken)).planned.ask.id for _ in range(11)] == [str(number) for number in range(11)]
    with pytest.raises(TraceError, match="broken"):
        await anext(taken)
