"""Clocks that leap, replicas that go and return, refusals for hours: what the core learns and keeps of them."""

from typing import Any

import pytest

from fakes.door import arrive, door, queueing_lanes, request, spec
from fakes.pools import INTENTS
from llmshed.admission.actions import Dispatch, Enqueue, Refuse
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import Arrived, Cancelled, Finished, FirstToken, ReplicaDown, ReplicaUp, Tick
from llmshed.admission.request import Lane
from llmshed.admission.state import PoolState

SLOW: dict[str, Any] = {"gross_ceiling_tokens": 10_000, "guard_band_ratio": 0.0, "decode_seconds_per_token": 0.009}
"""An answer of 1,000 tokens takes 9 s, nearly the residence of 10."""
GHOSTS = 20


def one_runs_one_waits_and_the_others_are_refused() -> AdmissionController:
    controller = door(spec(**SLOW), lanes=queueing_lanes(requests=1))
    arrive(controller, 1, 3_000, 1_000)
    arrive(controller, 2, 5_000, 1_000)
    for key in (1, 2):
        controller.handle(FirstToken(key), 0.1)
    assert isinstance(arrive(controller, 3, 3_500, 500, now=0.2), Enqueue)
    for key in range(10, 10 + GHOSTS):
        assert isinstance(arrive(controller, key, 3_500, 500, now=0.3), Refuse)
    assert pool_of(controller, 0.3).ghosts == GHOSTS
    return controller


def pool_of(controller: AdmissionController, now: float) -> PoolState:
    (pool,) = controller.state(now).pools
    return pool


@pytest.mark.parametrize("stood_still_seconds", [15.0, 60.0, 3_600.0, 1e6])
def test_a_process_that_stood_still_learns_nothing_from_what_it_hears_afterwards(stood_still_seconds: float) -> None:
    """The one that waited had waited for its residence, whenever that is noticed; nobody knows of the others."""
    controller = one_runs_one_waits_and_the_others_are_refused()
    now = 0.3 + stood_still_seconds
    controller.handle(Finished(1, 1_000), now)
    controller.handle(Finished(2, 1_000), now)
    pool = pool_of(controller, now + 1.0)
    assert (pool.ghosts, pool.ghosts_given_up) == (0, 0)
    assert pool.ghosts_fitted <= 1, "the one that was evicted is followed from then on"
    assert max(pool.factors) < 1.3
    assert controller.check() == ()
    assert isinstance(arrive(controller, 99, 3_500, 500, now=now + 1.0), Dispatch)


def test_a_replica_that_goes_and_returns_leaves_nothing_to_learn_behind() -> None:
    """Its charges end and free all that the refused ones lacked, but nobody could have started there."""
    controller = one_runs_one_waits_and_the_others_are_refused()
    controller.handle(Cancelled(3, sent=False), 0.4)
    controller.handle(ReplicaDown("r1"), 0.5)
    assert pool_of(controller, 0.5).ghosts == 0
    controller.handle(Finished(1, 1_000), 0.6)
    controller.handle(ReplicaUp(spec(**SLOW)), 1.0)
    controller.handle(Finished(2, 1_000), 1.1)
    pool = pool_of(controller, 2.0)
    assert (pool.ghosts_fitted, pool.ghosts_given_up, max(pool.factors)) == (0, 0, 1.0)
    assert controller.check() == ()


def test_after_hours_of_nothing_but_refusals_the_first_that_fits_is_served_at_once() -> None:
    controller = door(spec(**SLOW), lanes=queueing_lanes(requests=0))
    arrive(controller, 1, 8_000, 1_000)
    controller.handle(FirstToken(1), 0.1)
    now = 1.0
    for key in range(2, 130):
        now += 150.0
        refused = arrive(controller, key, 3_500, 500, now=now)
        assert isinstance(refused, Refuse)
        assert refused.verdict.retry_after_seconds is not None
        assert 0.0 < refused.verdict.retry_after_seconds < 1e6
    assert controller.next_wakeup() is None, "nobody waits, so nothing is timed"
    pool = pool_of(controller, now)
    assert max(pool.promised_seconds) <= 75.0
    assert controller.check() == ()
    controller.handle(Finished(1, 1_000), now)
    assert isinstance(arrive(controller, 1_000, 3_500, 500, now=now), Dispatch)
    assert max(pool_of(controller, now + 75.0).promised_seconds) == 0.0


@pytest.mark.parametrize("lane", [Lane.INTERACTIVE, Lane.BULK])
def test_the_wake_ups_that_are_asked_for_end_though_nothing_else_happens(lane: Lane) -> None:
    """Each lies ahead of the one before, and a queue whose replicas have fallen silent is empty after few of them."""
    controller = door(spec(**SLOW, prefill_tokens_per_second=2_000.0), lanes=queueing_lanes())
    for key in range(1, 40):
        asked = request(key, 300, 700, asked_intent=INTENTS[lane], streamed=key % 3 > 0)
        controller.handle(Arrived(asked), 0.01 * key)
    now, ticks = 0.4, 0
    while (wakeup := controller.next_wakeup()) is not None:
        assert wakeup > now
        now, ticks = wakeup, ticks + 1
        controller.handle(Tick(), now)
        assert ticks < 200
    assert sum(queue.requests for queue in pool_of(controller, now).queues) == 0
    assert controller.check() == ()
