"""Which pools have a ladder, when they want to be woken, and what their windows read."""

import math

import pytest

from fakes.door import arrive, policy, queueing_lanes, spec
from fakes.rungs import STOP_BULK, ladder_of, policy_on, pool_on
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import ReplicaDown, ReplicaRead, ReplicaRemoved, ReplicaUp
from llmshed.admission.service.ladders import Ladders, objective_seconds, reading_of
from llmshed.admission.service.pool import Pool
from llmshed.ladder.standing import Cause, Hold

LADDER = ladder_of(STOP_BULK, window_seconds=30.0)


def test_pools_know_their_ladders_and_lose_them() -> None:
    pools = {"main": Pool("main"), "other": Pool("other")}
    on = policy_on(pool_on(LADDER), pool_on(None, "other"))
    ladders = Ladders(pools, on, 5.0)
    assert (pools["main"].laddering, pools["other"].laddering) == (ladders.of("main"), None)
    assert ladders.due_at == 35.0
    assert not ladders.in_force
    (step,) = ladders.hold("main", Hold("r1", 20.0, "a test"), 6.0)
    assert (step.after, ladders.in_force, ladders.due_at) == (1, True, 20.0)
    assert ladders.check() == []
    (step,) = ladders.change_policy(policy_on(pool_on(None), pool_on(LADDER, "other")), 7.0)
    assert (step.pool, step.after, step.cause) == ("main", 0, Cause.RELOADED)
    assert (pools["main"].laddering, ladders.in_force, ladders.due_at) == (None, False, 37.0)
    assert ladders.release("main") == []
    assert ladders.check() == []


def test_a_hold_ends_by_itself() -> None:
    pools = {"main": Pool("main")}
    ladders = Ladders(pools, policy_on(pool_on(LADDER)), 0.0)
    ladders.hold("main", Hold("r1", 20.0, "a test"), 1.0)
    assert ladders.advance(19.0) == []
    (step,) = ladders.advance(20.0)
    assert (step.cause, ladders.in_force) == (Cause.EXPIRED, False)


def test_without_ladders_nothing_is_timed() -> None:
    ladders = Ladders({"main": Pool("main")}, policy(), 0.0)
    assert (ladders.due_at, ladders.advance(1e9), ladders.of("main")) == (math.inf, [], None)


def test_the_objective_is_the_part_of_the_first_token_that_waiting_may_take() -> None:
    """2 s by default, three tenths of it."""
    assert objective_seconds(policy()) == pytest.approx(0.6)


def test_a_reading_tells_who_waits_and_what_replicas_that_are_up_told() -> None:
    """r1 is full with one of all its 86,400 tokens; of two that wait one is bulk. r2 went down."""
    lanes = queueing_lanes(residence_seconds=1e5, bulk_residence_seconds=1e5)
    controller = AdmissionController(policy_on(pool_on(LADDER), lanes=lanes))
    controller.handle(ReplicaUp(spec("r1")), 0.0)
    arrive(controller, 1, 3_000, 83_400)
    arrive(controller, 2, 400, 100, now=1.0)
    arrive(controller, 3, 5_000, 100, now=2.0)
    controller.handle(ReplicaUp(spec("r2", gross_ceiling_tokens=400)), 2.0)
    controller.handle(ReplicaRead("r1", 0.7, None), 3.0)
    controller.handle(ReplicaRead("r2", 0.9, 2.0), 3.0)
    (pool,) = controller._pools.values()
    assert reading_of(pool, 4.0)[2:] == (0.9, 2.0, 0)
    controller.handle(ReplicaDown("r2"), 4.0)
    seen = reading_of(pool, 4.0)
    assert (seen.waiting_ages_seconds, seen.queued_prefill_tokens) == ((3.0,), 5_400)
    assert (seen.kv_used_ratio, seen.preemptions_over_budget, seen.replicas_lost) == (0.7, None, 1)
    controller.handle(ReplicaUp(spec("r2", gross_ceiling_tokens=400)), 5.0)
    assert reading_of(pool, 5.0)[2:] == (0.7, None, 0)


def test_a_replica_that_is_taken_away_is_not_lost() -> None:
    """One that was removed stays only for the request that it still serves."""
    controller = AdmissionController(policy_on(pool_on(LADDER)))
    controller.handle(ReplicaUp(spec("r1")), 0.0)
    arrive(controller, 1, 3_000, 400)
    controller.handle(ReplicaUp(spec("r2")), 1.0)
    controller.handle(ReplicaRemoved("r1"), 2.0)
    (pool,) = controller._pools.values()
    assert [replica.spec.name for replica in pool] == ["r1", "r2"]
    assert reading_of(pool, 3.0).replicas_lost == 0
    controller.handle(ReplicaDown("r2"), 4.0)
    assert reading_of(pool, 5.0).replicas_lost == 1
