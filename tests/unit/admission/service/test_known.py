"""Events about what the core does not know: refused before anything is done."""

from typing import Any

import pytest

from fakes.door import arrive, door, queueing_lanes, request, spec, told
from fakes.rungs import STOP_BULK, held, ladder_of, policy_on, pool_on
from llmshed.admission.actions import Enqueue, Evict
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import (
    Arrived,
    BudgetChanged,
    Cancelled,
    Event,
    Failed,
    Finished,
    FirstToken,
    NotSent,
    ReplicaDown,
    ReplicaRead,
    ReplicaRemoved,
    RungHeld,
    RungReleased,
    Tick,
)
from llmshed.admission.policy import ReplicaBudget
from llmshed.ladder.standing import Hold

FULL: dict[str, Any] = {"gross_ceiling_tokens": 7_000, "guard_band_ratio": 0.0, "decode_seconds_per_token": 0.001}
STRANGE = (
    FirstToken(99),
    Finished(99),
    Failed(99, engine_holds=True),
    NotSent(99),
    Cancelled(99, sent=True),
    ReplicaDown("r9"),
    ReplicaRemoved("r9"),
    BudgetChanged("r9", ReplicaBudget(1, 0.0, 1)),
    ReplicaRead("r9", 0.5, None),
    RungHeld("main", Hold("r1", 30.0, "a test")),
    Arrived(request(1)),
    Arrived(request(2)),
    FirstToken(2),
)
"""What is neither live nor known, what has a key in use, and what happens to one that only waits."""


def one_runs_and_one_waits() -> AdmissionController:
    controller = door(spec(**FULL), lanes=queueing_lanes())
    arrive(controller, 1, 3_500, 3_500)
    assert isinstance(arrive(controller, 2, 400, 100), Enqueue)
    return controller


@pytest.mark.parametrize("event", STRANGE, ids=str)
def test_an_event_that_raises_loses_nobody_whose_wait_was_over_by_then(event: Event) -> None:
    controller = one_runs_and_one_waits()
    with pytest.raises(ValueError if isinstance(event, Arrived) else KeyError):
        controller.handle(event, 100.0)
    assert told(controller.handle(Tick(), 100.0)) == [(Evict, 2)]
    assert controller.check() == ()


def test_a_key_is_in_use_until_its_engine_has_let_go() -> None:
    controller = one_runs_and_one_waits()
    controller.handle(Cancelled(2, sent=False), 1.0)
    controller.handle(Cancelled(1, sent=True), 1.0)
    with pytest.raises(ValueError, match="already live"):
        controller.handle(Arrived(request(1)), 1.5)
    assert controller.check() == ()
    controller.handle(Tick(), 10.0)
    controller.handle(Arrived(request(1)), 10.0)
    assert (controller.check(), controller.state(10.0).live_requests) == ((), 1)


def test_a_rung_is_held_by_a_name_of_its_ladder_and_nothing_is_given_up_twice() -> None:
    controller = AdmissionController(policy_on(pool_on(ladder_of(STOP_BULK))))
    with pytest.raises(ValueError, match="ladder small@1 has no rung `r2`"):
        held(controller, "r2")
    assert len(held(controller, "r1")) == 1
    assert len(controller.handle(RungReleased("main"), 1.0)) == 1
    for pool in ("main", "unknown"):
        assert controller.handle(RungReleased(pool), 1.0) == []
