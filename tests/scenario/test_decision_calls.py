"""A decision does as much with a thousand who wait as with ten: counted in Python calls, which no noise disturbs."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from fakes.door import door, queueing_lanes, request, spec
from fakes.rungs import SHED_LOW, STOP_BULK, cap, held, ladder_of, pool_on
from llmshed.admission.actions import Dispatch, Enqueue, Refuse
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import Arrived, Finished
from llmshed.admission.policy import PoolPolicy

RUNNING = 200
TOKENS = 500
FEW = 10
FEW_MORE = 5
"""Calls that a tidied heap or a rounded estimate may make more or less."""
PLAIN = pool_on(None)
LADDER = ladder_of(STOP_BULK, cap(50), SHED_LOW)
MOST_CALLS = {"refuse": 250, "queue": 260, "finish and send": 320}
"""Seen: 230, 243 and 296. A verdict that is copied, or a queue that is looked at once more, shows here."""


def full_door(waiting: int, room: int = 0, replicas: int = 1, pool: PoolPolicy = PLAIN) -> AdmissionController:
    """Return a controller whose replicas are full, with that many in the queue and room for more."""
    budget = {"gross_ceiling_tokens": RUNNING // replicas * TOKENS, "guard_band_ratio": 0.0, "hard_cap_sequences": 999}
    lanes = queueing_lanes(waiting + room, 1e6, queue_tokens=10**9)
    controller = door(*(spec(f"r{number}", **budget) for number in range(replicas)), lanes=lanes, pools=(pool,))
    for key in range(RUNNING + waiting):
        controller.handle(Arrived(request(key)), 0.0)
    controller.assess(request(-1), 1.0)  # builds the release forecast, which is seldom and not counted
    return controller


def calls_of(call: Callable[[], Any]) -> tuple[int, Any]:
    """Return how many Python functions a call enters, generators each time that they go on, and what it returns."""
    entered = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal entered
        entered += event == "call"

    sys.setprofile(count)
    try:
        result = call()
    finally:
        sys.setprofile(None)
    return entered, result


def refuse(waiting: int, replicas: int = 1) -> int:
    controller = full_door(waiting, replicas=replicas)
    entered, actions = calls_of(lambda: controller.handle(Arrived(request(-1)), 1.0))
    assert isinstance(actions[0], Refuse)
    return entered


def queue(waiting: int, replicas: int = 1) -> int:
    controller = full_door(waiting, room=1, replicas=replicas)
    entered, actions = calls_of(lambda: controller.handle(Arrived(request(-1)), 1.0))
    assert isinstance(actions[0], Enqueue)
    return entered


def finish_and_send(waiting: int, replicas: int = 1) -> int:
    controller = full_door(waiting, replicas=replicas)
    entered, actions = calls_of(lambda: controller.handle(Finished(0, 100), 1.0))
    assert isinstance(actions[-1], Dispatch)
    return entered


STEPS = {"refuse": refuse, "queue": queue, "finish and send": finish_and_send}


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_calls_do_not_grow_with_the_queue(step: str) -> None:
    few = STEPS[step](FEW)
    many = STEPS[step](100 * FEW)
    assert abs(many - few) <= FEW_MORE
    assert max(few, many) <= MOST_CALLS[step]


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_further_replica_adds_less_than_a_quarter_of_what_one_costs(step: str) -> None:
    one, eight = STEPS[step](FEW), STEPS[step](FEW, 8)
    assert eight - one < 7 * one / 4


@pytest.mark.slow
@pytest.mark.parametrize(("rung", "most_more"), [(None, 15), ("r3", 60)])
def test_a_ladder_adds_little_and_nothing_that_grows_with_the_queue(rung: str | None, most_more: int) -> None:
    """Seen: 9 more on the ground, 40 where a ceiling is lowered."""
    entered = []
    for waiting in (FEW, 100 * FEW):
        controller = full_door(waiting, pool=pool_on(LADDER))
        if rung is not None:
            held(controller, rung, now=1.0)
        entered.append(calls_of(lambda: controller.handle(Arrived(request(-1)), 1.0))[0])  # noqa: B023 - called at once
    few, many = entered
    assert abs(many - few) <= FEW_MORE
    assert few - refuse(FEW) <= most_more
