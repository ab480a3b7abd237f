"""A request's life in the core, as events in and actions out."""

from typing import Any

import pytest

from fakes.door import BOTH_LANES, arrive, door, policy, queueing_lanes, request, spec, told
from llmshed.admission.actions import Dispatch, Enqueue, Evict, Refuse, Released
from llmshed.admission.budget import Reservation
from llmshed.admission.controller import AdmissionController
from llmshed.admission.decide import NO_REPLICA_RETRY_SECONDS
from llmshed.admission.events import (
    Arrived,
    BudgetChanged,
    Cancelled,
    Draining,
    Failed,
    Finished,
    FirstToken,
    NotSent,
    PolicyChanged,
    ReplicaDown,
    ReplicaRemoved,
    ReplicaUp,
    Tick,
)
from llmshed.admission.policy import PoolPolicy, ReplicaBudget, TenantPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.admission.verdict import Decision

GRACE = 1.0
BRISK: dict[str, Any] = {"gross_ceiling_tokens": 10_000, "guard_band_ratio": 0.0, "decode_seconds_per_token": 0.001}


def active(controller: AdmissionController) -> int:
    assert controller.check() == ()
    return sum(replica.equation.active_tokens for replica in controller.state(0.0).replicas)


def test_finish_gives_back_at_once() -> None:
    controller = door()
    assert isinstance(arrive(controller, 1), Dispatch)
    assert active(controller) == 500
    assert controller.handle(FirstToken(1), 1.0) == []
    assert controller.handle(Finished(1, 80), 2.0) == [Released(1, "r1", 500)]
    assert active(controller) == 0


def test_a_client_that_left_a_whole_answer_is_charged_for_its_own_prefill_only() -> None:
    controller = door(spec(release_grace_seconds=GRACE, prefill_tokens_per_second=100.0))
    for key in range(10):
        arrive(controller, key, 1_000, 10, now=20.0 * key, streamed=False)  # each prefill takes 10 s
    controller.handle(Cancelled(9, sent=True), 185.0)
    assert controller.next_wakeup() == pytest.approx(190.0)


def test_a_refused_request_costs_nothing() -> None:
    controller = door(spec(hard_cap_sequences=1))
    arrive(controller, 1)
    for key in range(2, 102):
        assert isinstance(arrive(controller, key), Refuse)
    assert active(controller) == 500
    controller.handle(Finished(1), 1.0)
    assert isinstance(arrive(controller, 200, now=1.0), Dispatch)


def test_a_client_that_left_after_its_first_token_is_charged_for_the_grace() -> None:
    controller = door(spec(release_grace_seconds=GRACE))
    arrive(controller, 1)
    controller.handle(FirstToken(1), 1.0)
    assert controller.handle(Cancelled(1, sent=True), 2.0) == []
    (state,) = controller.state(0.0).replicas
    assert (state.equation.active_tokens, state.releasing_tokens) == (500, 500)
    assert controller.state(0.0).live_requests == 0
    assert controller.next_wakeup() == 3.0
    assert controller.handle(Tick(), 2.9) == []
    assert controller.handle(Tick(), 3.0) == [Released(1, "r1", 500)]
    assert (active(controller), controller.next_wakeup()) == (0, None)


def test_a_client_that_left_before_its_first_token_is_charged_for_the_prefill() -> None:
    controller = door(spec(prefill_tokens_per_second=1_000.0, release_grace_seconds=GRACE))
    arrive(controller, 1, 20_000, 100)
    controller.handle(Cancelled(1, sent=True), 2.0)
    assert controller.next_wakeup() == pytest.approx(20.0)


def test_a_request_that_was_never_sent_is_freed_at_once() -> None:
    controller = door()
    arrive(controller, 1)
    assert controller.handle(Cancelled(1, sent=False), 1.0) == [Released(1, "r1", 500)]


@pytest.mark.parametrize(("holds", "left"), [(False, 0), (True, 500)])
def test_a_failure_frees_unless_the_engine_may_still_run(*, holds: bool, left: int) -> None:
    controller = door()
    arrive(controller, 1)
    controller.handle(FirstToken(1), 0.5)
    controller.handle(Failed(1, engine_holds=holds), 1.0)
    assert active(controller) == left


def test_any_event_frees_what_is_due() -> None:
    controller = door(spec(release_grace_seconds=GRACE))
    arrive(controller, 1)
    controller.handle(FirstToken(1), 0.0)
    controller.handle(Cancelled(1, sent=True), 0.0)
    released, dispatched = controller.handle(Arrived(request(2)), 5.0)
    assert released == Released(1, "r1", 500)
    assert isinstance(dispatched, Dispatch)


def test_a_request_that_its_replica_never_read_goes_elsewhere_once() -> None:
    controller = door(spec("r1"), spec("r2"))
    first = arrive(controller, 1)
    assert first.replica == "r1"
    released, second = controller.handle(NotSent(1), 1.0)
    assert released == Released(1, "r1", 500)
    assert isinstance(second, Dispatch)
    assert second.replica == "r2"
    assert active(controller) == 500
    *_, last = controller.handle(NotSent(1), 2.0)
    assert isinstance(last, Refuse)
    assert (last.verdict.reason, last.verdict.decision) == (Reason.NO_REPLICA, Decision.REFUSE)
    assert last.verdict.retry_after_seconds == NO_REPLICA_RETRY_SECONDS
    assert last.verdict.lane is Lane.INTERACTIVE
    assert last.verdict.maximums is not None
    assert last.verdict.maximums == second.verdict.maximums
    assert active(controller) == 0


def test_a_request_that_its_replica_never_read_waits_for_another_and_not_for_that_one() -> None:
    controller = door(spec("r1"), spec("r2"), lanes=queueing_lanes(residence_seconds=1e5, bulk_residence_seconds=1e5))
    running = [arrive(controller, key, 3_000, 83_400, streamed=True) for key in (1, 2)]
    assert [action.replica for action in running] == ["r1", "r2"]
    controller.handle(Finished(1), 0.0)
    assert arrive(controller, 3).replica == "r1"
    # The replica that refused the connection is free and still counts as up.
    released, queued = controller.handle(NotSent(3), 1.0)
    assert (released, type(queued)) == (Released(3, "r1", 500), Enqueue)
    assert controller.check() == ()
    assert controller.handle(Tick(), 2.0) == []
    _, dispatched = controller.handle(Finished(2), 3.0)
    assert isinstance(dispatched, Dispatch)
    assert dispatched.replica == "r2"
    *_, last = controller.handle(NotSent(3), 4.0)
    assert isinstance(last, Refuse)


def test_a_request_that_was_lost_once_and_moves_to_another_pool_is_not_sent_a_third_time() -> None:
    pools = tuple(PoolPolicy(name, "m", frozenset(), BOTH_LANES) for name in ("one", "two"))
    replicas = (spec("r1", pool="one"), spec("r2", pool="one"), spec("r3", pool="two"))
    controller = door(*replicas, pools=pools, lanes=queueing_lanes(residence_seconds=1e5, bulk_residence_seconds=1e5))
    for key in (1, 2, 3):
        arrive(controller, key, 3_000, 83_400)
    controller.handle(Finished(1), 0.0)
    assert arrive(controller, 4).replica == "r1"
    controller.handle(ReplicaDown("r1"), 1.0)
    _, queued = controller.handle(NotSent(4), 1.0)
    assert isinstance(queued, Enqueue)
    for name in ("r2", "r1"):
        controller.handle(ReplicaRemoved(name), 2.0)
    *_, dispatched = controller.handle(Finished(3), 3.0)
    assert isinstance(dispatched, Dispatch)
    assert dispatched.replica == "r3"
    controller.handle(ReplicaUp(spec("r4", pool="two")), 3.0)
    *_, last = controller.handle(NotSent(4), 4.0)
    assert isinstance(last, Refuse)


def test_one_who_moves_from_a_lost_replica_may_take_the_place_of_another_who_waits_for_it() -> None:
    """The queue holds 162,000 tokens of two replicas, then 81,000 of one; 500 of a higher class move first."""
    tenants = {"acme": TenantPolicy("acme", top_class=PriorityClass.HIGH)}
    long_waits = queueing_lanes(residence_seconds=1e5, bulk_residence_seconds=1e5)
    controller = door(spec("r1"), spec("r2"), tenants=tenants, lanes=long_waits)
    for key in (1, 2):
        arrive(controller, key, 3_000, 83_400, streamed=True)
    controller.handle(Finished(1), 0.0)
    assert arrive(controller, 3, asked_class=PriorityClass.HIGH, asked_intent=Intent.BULK).replica == "r1"
    assert arrive(controller, 4, 3_000, 82_900).replica == "r1"
    controller.handle(NotSent(3), 1.0)  # it waits for r2 alone
    for name in ("r1", "r2"):
        controller.handle(BudgetChanged(name, spec(gross_ceiling_tokens=90_000).budget), 1.0)
    low = [arrive(controller, key, 3_000, 77_000, now=2.0, asked_class=PriorityClass.LOW) for key in (5, 6)]
    assert [type(action) for action in low] == [Enqueue, Enqueue]
    actions = controller.handle(ReplicaDown("r2"), 3.0)
    assert [(type(action), getattr(action, "key", 0)) for action in actions] == [(Evict, 6)]
    assert controller.check() == ()
    assert [queue.requests for queue in controller.state(3.0).pools[0].queues if queue.requests] == [1, 1]


def test_who_leaves_the_queue_lets_those_behind_it_start() -> None:
    """3,000 are free: the first lacks room, the second does not and is of a lower class."""
    tenants = {"acme": TenantPolicy("acme", top_class=PriorityClass.HIGH)}
    controller = door(spec(**BRISK), tenants=tenants, lanes=queueing_lanes())
    arrive(controller, 1, 6_000, 1_000)
    controller.handle(FirstToken(1), 0.1)
    assert isinstance(arrive(controller, 2, 4_000, 1_000, now=0.2, asked_class=PriorityClass.HIGH), Enqueue)
    assert isinstance(arrive(controller, 3, 100, 100, now=0.3, asked_class=PriorityClass.LOW), Enqueue)
    assert told(controller.handle(Cancelled(2, sent=False), 0.4)) == [(Dispatch, 3)]


def test_who_leaves_as_its_wait_is_over_is_answered_nothing_and_everybody_else_is() -> None:
    """The word comes at the very end of the wait of 10 s, or later, as a busy loop's may."""
    for at in (10.0, 25.0):
        controller = door(spec(**BRISK), lanes=queueing_lanes())
        arrive(controller, 1, 6_000, 1_000)
        controller.handle(FirstToken(1), 0.0)
        for key in (2, 3):
            assert isinstance(arrive(controller, key, 3_500, 500), Enqueue)
        assert told(controller.handle(Cancelled(2, sent=False), at)) == [(Evict, 3)]
        assert active(controller) == 7_000
        with pytest.raises(KeyError):
            controller.handle(Cancelled(2, sent=False), at)


def test_displaced_work_stands_before_no_ghost_any_more() -> None:
    """A ghost of the lowest class that was behind nobody but who was displaced has fit then."""
    tenants = {"acme": TenantPolicy("acme", top_class=PriorityClass.HIGH)}
    controller = door(spec(**BRISK), tenants=tenants, lanes=queueing_lanes(requests=1))
    arrive(controller, 1, 6_000, 1_000)
    controller.handle(FirstToken(1), 0.1)
    (pool,) = controller._pools.values()
    ghosts = pool.learnt.ghosts
    assert isinstance(arrive(controller, 2, 3_500, 500, now=0.1, asked_class=PriorityClass.NORMAL), Enqueue)
    ghosts.follow(2, 20.0, 20.0, Reservation(0, 0, 0, 0), 0.2)  # by rank: interactive, low
    controller.handle(Tick(), 0.2)
    assert (len(ghosts), ghosts.fitted) == (1, 0)
    evicted, queued = controller.handle(Arrived(request(3, 3_500, 500, asked_class=PriorityClass.HIGH)), 0.3)
    assert (type(evicted), type(queued)) == (Evict, Enqueue)
    assert (len(ghosts), ghosts.fitted) == (1, 1)  # the one that is followed now is the displaced one's


def test_a_newcomer_takes_nothing_that_comes_free_in_the_instant_of_its_arrival_from_who_waits() -> None:
    controller = door(spec(release_grace_seconds=GRACE, **BRISK), lanes=queueing_lanes())
    arrive(controller, 1, 6_000, 1_000)
    controller.handle(FirstToken(1), 0.1)
    assert isinstance(arrive(controller, 2, 4_000, 1_000, now=0.2), Enqueue)
    controller.handle(Cancelled(1, sent=True), 0.3)
    actions = controller.handle(Arrived(request(3, 5_000, 3_500)), 0.3 + GRACE)
    assert told(actions) == [(Released, 1), (Dispatch, 2), (Enqueue, 3)]


def test_who_waits_for_a_replica_that_is_removed_is_not_told_that_the_gateway_starts() -> None:
    controller = door(lanes=queueing_lanes(residence_seconds=1e5, bulk_residence_seconds=1e5))
    arrive(controller, 1, 3_000, 83_400)
    assert isinstance(arrive(controller, 2), Enqueue)
    (evicted,) = controller.handle(ReplicaRemoved("r1"), 1.0)
    assert isinstance(evicted, Evict)
    assert evicted.verdict.reason is Reason.NO_REPLICA


def test_without_another_replica_it_is_refused_as_503() -> None:
    controller = door(spec("r1"))
    arrive(controller, 1)
    *_, refused = controller.handle(NotSent(1), 1.0)
    assert isinstance(refused, Refuse)
    assert refused.verdict.status == 503


def test_a_budget_that_shrinks_evicts_nothing_that_runs() -> None:
    controller = door()
    arrive(controller, 1, 50_000, 100)
    assert controller.handle(BudgetChanged("r1", ReplicaBudget(10_000, 0.1, 64)), 1.0) == []
    (state,) = controller.state(0.0).replicas
    assert state.equation.headroom_tokens < 0
    assert isinstance(arrive(controller, 2, now=1.0), Refuse)
    controller.handle(Finished(1), 2.0)
    assert isinstance(arrive(controller, 3, now=2.0), Dispatch)


def test_a_replica_that_comes_up_again_keeps_what_runs_there() -> None:
    controller = door()
    arrive(controller, 1)
    controller.handle(ReplicaDown("r1"), 1.0)
    controller.handle(ReplicaUp(spec("r1", gross_ceiling_tokens=1_000)), 2.0)
    (state,) = controller.state(0.0).replicas
    assert (state.up, state.equation.gross_ceiling_tokens, state.equation.active_tokens) == (True, 1_000, 500)


def test_a_removed_replica_is_forgotten_when_its_last_request_ends() -> None:
    controller = door(spec("r1"), spec("r2"))
    arrive(controller, 1)
    controller.handle(ReplicaRemoved("r1"), 1.0)
    assert arrive(controller, 2, now=1.0).replica == "r2"
    assert {r.name for r in controller.state(0.0).replicas} == {"r1", "r2"}
    controller.handle(Finished(1), 2.0)
    assert {r.name for r in controller.state(0.0).replicas} == {"r2"}
    controller.handle(ReplicaRemoved("r2"), 3.0)
    controller.handle(Finished(2), 4.0)
    assert controller.state(0.0).replicas == ()
    assert isinstance(arrive(controller, 3, now=5.0), Refuse)


def test_a_running_request_keeps_the_policy_that_it_came_under() -> None:
    controller = door(spec("r1"), spec("r2"))
    arrive(controller, 1)
    controller.handle(PolicyChanged(policy(tenants={"new": TenantPolicy("new")})), 1.0)
    assert isinstance(arrive(controller, 2, now=1.0), Refuse)
    *_, again = controller.handle(NotSent(1), 2.0)
    assert isinstance(again, Dispatch)


def test_draining_refuses_and_lets_run() -> None:
    controller = door()
    arrive(controller, 1)
    controller.handle(Draining(), 1.0)
    assert controller.state(0.0).draining
    refused = arrive(controller, 2, now=1.0)
    assert refused.verdict.reason is Reason.DRAINING
    gated = controller.gate("acme", 1.0)
    assert gated is not None
    assert gated.reason is Reason.DRAINING
    assert controller.handle(Finished(1), 2.0) == [Released(1, "r1", 500)]


def test_one_ending_only() -> None:
    controller = door()
    arrive(controller, 1)
    controller.handle(Finished(1), 1.0)
    for second in (Finished(1), Failed(1, engine_holds=True), Cancelled(1, sent=True), NotSent(1), FirstToken(1)):
        with pytest.raises(KeyError):
            controller.handle(second, 2.0)
    assert active(controller) == 0


def test_a_key_is_live_once() -> None:
    controller = door()
    arrive(controller, 1)
    with pytest.raises(ValueError, match="already live"):
        controller.handle(Arrived(request(1)), 0.0)
    assert active(controller) == 500


def test_assess_and_gate_change_nothing() -> None:
    controller = door()
    before = controller.state(0.0)
    for _ in range(3):
        controller.assess(request(1), 0.0)
        controller.gate("acme", 0.0)
    assert controller.state(0.0) == before


def test_the_gate_knows_a_gateway_without_replicas() -> None:
    empty = AdmissionController(policy())
    starting = empty.gate("acme", 0.0)
    assert starting is not None
    assert starting.reason is Reason.STARTING
    controller = door()
    controller.handle(ReplicaDown("r1"), 0.0)
    down = controller.gate("acme", 0.0)
    assert down is not None
    assert down.reason is Reason.NO_REPLICA
    gone = door().gate("nobody", 0.0)
    assert gone is not None
    assert gone.reason is Reason.UNAUTHENTICATED


def test_lanes_are_told_apart_in_the_state() -> None:
    controller = door()
    arrive(controller, 1)
    arrive(controller, 2, 9_000, 1_000, copies=2)
    (state,) = controller.state(0.0).replicas
    assert {lane.value: (u.requests, u.sequences, u.reserved_tokens) for lane, u in state.lanes.items()} == {
        "interactive": (1, 1, 500),
        "bulk": (1, 2, 20_000),
    }


def test_check_sees_a_leak() -> None:
    controller = door()
    arrive(controller, 1)
    controller._live.clear()
    assert any("neither live nor releasing" in sentence for sentence in controller.check())


def test_check_sees_what_is_remembered_of_a_request_that_ended() -> None:
    controller = door()
    controller._lost_once.add(7)
    assert controller.check() == ("request 7 is remembered as lost once and is nowhere",)


@pytest.mark.parametrize(("told", "possible"), [(10**12, 1_000), (-5, 0)])
def test_what_an_engine_tells_beyond_what_it_may_have_made_teaches_no_more_than_that(told: int, possible: int) -> None:
    tenants = {"acme": TenantPolicy("acme"), "other": TenantPolicy("other")}
    verdicts = []
    for output_tokens in (told, possible):
        controller = door(spec(**BRISK), tenants=tenants, lanes=queueing_lanes())
        arrive(controller, 1, 2_000, 1_000)
        arrive(controller, 2, 3_000, 1_000, tenant="other")
        for key in (1, 2):
            controller.handle(FirstToken(key), 0.1)
        for key, tenant in ((3, "acme"), (4, "other")):
            assert isinstance(arrive(controller, key, 3_500, 1_000, now=0.2, tenant=tenant), Enqueue)
        controller.handle(Finished(1, output_tokens), 1.0)
        verdicts.append([controller.assess(request(5, 4_000, 1_000, tenant=tenant), 1.1) for tenant in tenants])
    assert verdicts[0] == verdicts[1]
