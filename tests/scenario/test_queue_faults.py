"""Faults of other gateways and what replicas do to those who wait: none of it may leak, block or starve anybody.

The numbers are those of section 6 of the list of faults that the project holds itself against: 2, 4, 8 and 15.
"""

from typing import Any

import pytest

from fakes.door import door, queueing_lanes, spec, told
from fakes.stub_engines import Engines
from llmshed.admission.actions import Dispatch, Evict
from llmshed.admission.events import BudgetChanged, Cancelled, Draining, NotSent, ReplicaDown, ReplicaRemoved, ReplicaUp
from llmshed.admission.policy import ModelLimits, ReplicaBudget, ReplicaSpec, TenantPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, PriorityClass

TENANTS = {name: TenantPolicy(name, top_class=PriorityClass.HIGH) for name in ("acme", "bolt")}


def small(name: str = "r1", **changes: Any) -> ReplicaSpec:
    given = {"gross_ceiling_tokens": 10_000, "guard_band_ratio": 0.0, "decode_seconds_per_token": 0.02}
    return spec(name, **given | changes)


def engines(*specs: ReplicaSpec, **lanes: Any) -> Engines:
    return Engines(door(*specs or (small(),), tenants=TENANTS, lanes=queueing_lanes(**lanes)))


def fill(run: Engines, requests: int = 10) -> None:
    """Fill replicas with requests of 1,000 tokens each, which end one after the other."""
    for _ in range(requests):
        run.come(900, 100)
    run.output_tokens = lambda one, _: 60 * one.key
    run.run(0.0)
    assert run.running == requests


def test_of_200_that_wait_180_leave_and_the_engine_sees_the_other_20() -> None:
    """Fault 2: who left is not prefilled, and its place is free at once."""
    run = engines(requests=200, residence_seconds=600.0, queue_tokens=1_000_000)
    fill(run)
    keys = [run.come(900, 100) for _ in range(200)]
    run.run(0.0)
    assert all(run.stories[key].queued for key in keys)
    for key in keys[:180]:
        assert run.tell(Cancelled(key, sent=False)) == []
    (pool,) = run.controller.state(0.0).pools
    assert sum(queue.requests for queue in pool.queues) == 20
    more = [run.come(900, 100) for _ in range(181)]
    run.run(0.0)
    assert [run.stories[key].queued for key in more] == [True] * 180 + [False]
    for key in more[:180]:
        run.tell(Cancelled(key, sent=False))
    run.run(600.0)
    assert [key for key, one in run.stories.items() if one.dispatched_at is not None] == [*range(1, 11), *keys[180:]]
    assert run.controller.next_wakeup() is None


def test_refused_for_seats_it_has_not_charged_tokens() -> None:
    """Fault 4: 100 are refused for one bound while another has room; the next goes as soon as a seat is free."""
    run = engines(small(hard_cap_sequences=1), requests=0)
    run.come(900, 100)
    refused = [run.come(900, 100) for _ in range(100)]
    run.run(0.0)
    assert {run.reason(key) for key in refused} == {Reason.CONCURRENCY_LIMIT}
    assert run.controller.state(0.0).replicas[0].equation.active_tokens == 1_000
    run.run(5.0)
    last = run.come(9_000, 1_000, asked_intent=Intent.BULK)
    run.run(5.0)
    assert run.stories[last].dispatched_at == 5.0


def test_what_is_busy_is_429_with_a_wait_and_what_is_gone_is_503() -> None:
    """Fault 8: each refusal of a queue is contended, never an outage, and says when to come back."""
    run = engines(requests=2, residence_seconds=4.0)
    run.output_tokens = lambda _, ceiling: 10_000 + ceiling
    for _ in range(10):
        run.come(900, 100)
    waits = [run.come(900, 100, asked_class=PriorityClass.LOW) for _ in range(2)]
    full = run.come(900, 100, asked_class=PriorityClass.LOW)
    above = run.come(900, 100, asked_class=PriorityClass.HIGH)
    run.run(10.0)
    busy = {full: Reason.QUEUE_FULL, waits[1]: Reason.SHED_PRIORITY, waits[0]: Reason.QUEUE_TIMEOUT}
    busy[above] = Reason.QUEUE_TIMEOUT
    for key, reason in busy.items():
        verdict = run.stories[key].verdict
        assert verdict is not None
        assert (verdict.reason, verdict.status) == (reason, 429)
        assert verdict.retry_after_seconds is not None
        assert verdict.retry_after_seconds > 0
        assert verdict.maximums is not None
        assert verdict.detail


def test_without_a_replica_left_they_are_told_503() -> None:
    run = engines()
    fill(run)
    waiting = run.come(900, 100)
    run.run(0.0)
    assert run.stories[waiting].queued
    (out,) = run.tell(ReplicaDown("r1"))
    assert isinstance(out, Evict)
    assert (out.key, out.verdict.status, out.verdict.reason) == (waiting, 503, Reason.NO_REPLICA)


@pytest.mark.slow
@pytest.mark.parametrize("tenant", ["acme", "bolt"])
def test_one_of_18_000_among_500_small_ones_is_served_within_its_residence_and_they_flow(tenant: str) -> None:
    """Fault 15. Of 20,000 tokens 2,000 are free at best, and small requests never cease to come for them."""
    run = engines(small(gross_ceiling_tokens=20_000), requests=1_000, bulk_residence_seconds=40.0)
    run.output_tokens = lambda one, ceiling: 20 + one.key % ceiling
    for _ in range(20):
        run.come(700, 300, at=0.0, asked_intent=Intent.BULK)
    large = run.come(17_000, 1_000, at=0.1, asked_intent=Intent.BULK, tenant=tenant)
    small_ones = [run.come(700, 300, at=0.1 + 0.15 * number, asked_intent=Intent.BULK) for number in range(500)]
    run.run(300.0)
    story = run.stories[large]
    assert story.queued
    assert story.dispatched_at is not None
    assert story.dispatched_at <= 40.1
    served = [run.stories[key].dispatched_at for key in small_ones]
    before = [at for at in served if at is not None and at < story.dispatched_at]
    assert len(before) > 50
    assert sum(at is not None for at in served) > 350
    assert all(one.dispatched_at is not None or one.refused_at is not None for one in run.stories.values())


def test_those_who_wait_for_a_lost_replica_move_to_another() -> None:
    run = engines(small("r1"), small("r2"))
    fill(run, 20)
    keys = [run.come(900, 100) for _ in range(6)]
    run.run(0.0)
    names = {one.name: one.equation.queued_tokens for one in run.controller.state(0.0).replicas}
    assert sum(names.values()) == 6_000
    assert min(names.values()) > 0
    assert run.tell(ReplicaDown("r1")) == []
    names = {one.name: one.equation.queued_tokens for one in run.controller.state(0.0).replicas}
    assert names == {"r1": 0, "r2": 6_000}
    run.run(60.0)
    assert {run.stories[key].replica for key in keys if run.stories[key].dispatched_at is not None} == {"r2"}


def test_those_who_wait_for_a_removed_replica_that_alone_could_hold_them_are_told_so() -> None:
    """r2 could never hold 8,000 tokens."""
    run = engines(small("r1"), small("r2", gross_ceiling_tokens=2_000))
    fill(run, 12)
    large, light = run.come(7_000, 1_000, asked_intent=Intent.BULK), run.come(900, 100)
    run.run(0.0)
    assert [run.stories[key].queued for key in (large, light)] == [True, True]
    actions = run.tell(ReplicaRemoved("r1"))
    assert told(actions) == [(Evict, large)]
    assert run.reason(large) is Reason.LANE_LIMIT
    run.run(30.0)
    assert run.stories[light].replica == "r2"


def test_a_replica_that_comes_back_with_a_longer_context_takes_those_who_wait() -> None:
    """What waits was measured against its old numbers, under which it could never have run there."""
    run = engines(small("r1"), small("r2", limits=ModelLimits(500, 600)))
    fill(run)
    waits = run.come(900, 100)
    run.run(0.0)
    assert run.stories[waits].queued
    run.tell(ReplicaUp(small("r2")))
    assert run.stories[waits].replica == "r2"


def test_a_derate_evicts_nothing_and_lends_nothing_beyond_it() -> None:
    run = engines()
    fill(run)
    keys = [run.come(900, 100) for _ in range(4)]
    run.run(0.0)
    assert run.tell(BudgetChanged("r1", ReplicaBudget(5_000, 0.0, 64, decode_seconds_per_token=0.02))) == []
    while run.now < 60.0 and not all(run.stories[key].dispatched_at for key in keys):
        run.run(run.now + 0.1)
        for key in keys:
            if run.stories[key].dispatched_at == run.now:
                assert run.active["r1"] <= 5_000
    served = [run.stories[key].dispatched_at for key in keys]
    ends = sorted(one.done_at or 0.0 for one in run.stories.values())
    assert [at for at in served if at is not None and at < ends[5]] == []  # six have to end before one may begin
    assert sum(one.refused_at is not None for one in run.stories.values() if one.done_at) == 0


def test_sent_to_a_replica_that_was_lost_it_waits_once_more_and_goes_elsewhere() -> None:
    run = engines(small("r1"), small("r2"))
    fill(run, 20)
    waits = run.come(900, 100)
    run.run(0.0)
    while run.stories[waits].dispatched_at is None:
        run.run(run.now + 0.05)
    lost = run.stories[waits].replica
    run.run(run.now)
    actions = run.controller.handle(NotSent(waits), run.now)
    assert not any(isinstance(action, Dispatch) and action.replica == lost for action in actions)
    assert run.controller.check() == ()


def test_draining_serves_those_who_wait_and_nobody_else() -> None:
    run = engines()
    fill(run)
    waits = run.come(900, 100)
    run.run(0.0)
    assert run.tell(Draining()) == []
    late = run.come(900, 100)
    run.run(60.0)
    assert run.stories[waits].dispatched_at is not None
    assert run.reason(late) is Reason.DRAINING
    assert run.controller.next_wakeup() is None


@pytest.mark.parametrize("size", [400, 4_000, 9_000])
def test_an_idle_replica_with_a_full_queue_goes_on(size: int) -> None:
    """A slow prefill window lets one prompt in at a time; nothing but its own time wakes those who wait."""
    run = engines(
        small(prefill_tokens_per_second=2_000.0, prefill_inflight_tokens=1_000),
        requests=5,
        residence_seconds=100.0,
        bulk_residence_seconds=100.0,
        queue_tokens=1_000_000,
    )
    run.prefill_tokens_per_second = 50_000.0
    intent = Intent.INTERACTIVE if size == 400 else Intent.BULK
    keys = [run.come(size, 10, asked_intent=intent, streamed=bool(number % 2)) for number in range(6)]
    run.run(200.0)
    assert all(run.stories[key].done_at is not None for key in keys)
    assert max(run.stories[key].dispatched_at or 0.0 for key in keys) <= 5 * size / 2_000.0 + 1.0
