"""The term of an exchange: which of two deadlines holds when, and what ended it."""

import asyncio

import pytest

from fakes.door import request
from fakes.loops import on_both_loops
from llmshed.gateway.relay.term import Term

ARRIVED_AT = 1_000.0
"""A clock that has nothing to do with the loop's time."""


def term(deadline: float | None, first_token: float | None, now: float = ARRIVED_AT) -> Term:
    by = [None if seconds is None else ARRIVED_AT + seconds for seconds in (deadline, first_token)]
    return Term(request(1, arrived_at=ARRIVED_AT, deadline=by[0], first_token_deadline=by[1]), now)


async def overruns(one: Term, steps: int, began_after: int | None = None) -> bool:
    """Say whether an exchange of so many steps of 10 ms is cut."""
    try:
        async with one.timeout:
            for step in range(steps):
                if step == began_after:
                    one.answer_began()
                await asyncio.sleep(0.01)
    except TimeoutError:
        return True
    return False


@pytest.mark.parametrize(
    ("deadline", "first_token", "granted", "beginning"),
    [
        (None, None, float("inf"), False),
        (9.0, None, 9.0, False),
        (None, 2.0, 2.0, True),
        (9.0, 2.0, 2.0, True),
        (2.0, 9.0, 2.0, False),
        (2.0, 2.0, 2.0, False),
    ],
)
@on_both_loops
async def test_the_earlier_deadline_holds_until_the_answer_begins(
    *, deadline: float | None, first_token: float | None, granted: float, beginning: bool
) -> None:
    one = term(deadline, first_token)
    assert (one.granted_seconds, one.awaits_beginning) == (granted, beginning)
    async with one.timeout:
        one.answer_began()
    assert (one.granted_seconds, one.awaits_beginning) == (deadline or float("inf"), False)


@on_both_loops
async def test_a_deadline_cuts_and_counts_from_the_arrival() -> None:
    late = term(5.0, None, now=ARRIVED_AT + 4.98)
    assert await overruns(late, 100)
    assert (late.broken_off, late.granted_seconds) == (False, 5.0)
    assert not await overruns(term(5.0, None), 3)
    assert await overruns(term(5.0, None, now=ARRIVED_AT + 6.0), 1)


@on_both_loops
async def test_an_answer_that_began_in_time_is_held_to_its_end_only() -> None:
    assert not await overruns(term(None, 0.05), 10, began_after=1)
    unbegun = term(None, 0.02)
    assert await overruns(unbegun, 100)
    assert unbegun.awaits_beginning
    ended = term(0.06, 0.04)
    assert await overruns(ended, 100, began_after=1)
    assert not ended.awaits_beginning


@on_both_loops
async def test_what_is_broken_off_is_not_prolonged_by_its_beginning() -> None:
    one = term(None, 9.0)
    try:
        async with one.timeout:
            one.break_off()
            one.answer_began()
            await asyncio.sleep(1.0)
        raise AssertionError("nothing was cut")
    except TimeoutError:
        assert one.broken_off


@on_both_loops
async def test_a_deadline_that_just_passed_is_the_one_cause() -> None:
    one = term(1.0, None, now=ARRIVED_AT + 2.0)

    async def shut_down() -> None:
        while not one.timeout.expired():  # noqa: ASYNC110 - the loop's own timer is what is waited for
            await asyncio.sleep(0)
        one.break_off()
        one.answer_began()

    asking = asyncio.ensure_future(shut_down())
    assert await overruns(one, 100)
    await asking
    assert not one.broken_off
