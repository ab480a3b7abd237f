"""The queues of a pool and what its replicas are charged with for them."""

from fakes.door import queueing_lanes, spec
from fakes.pools import POLICY, pool_of, queued, running
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.service.pool import Pool

INTERACTIVE, BULK = Lane.INTERACTIVE, Lane.BULK


def charged(name: str, pool: Pool) -> int:
    return sum(queued.tokens for queued in pool.replicas[name].queued)


def test_who_waits_is_charged_to_its_preferred_replica_and_to_no_other() -> None:
    pool = pool_of(spec("r1"), spec("r2"))
    queued(pool, 1, 900, 100)
    queued(pool, 2, 9_000, 1_000, BULK, replica="r2")
    assert (pool.waiting, 1 in pool, 3 in pool) == (2, True, False)
    assert (charged("r1", pool), charged("r2", pool)) == (1_000, 10_000)
    assert [waiting.key for waiting in pool.waiting_for("r2")] == [2]
    assert pool.check() == []
    assert pool.leave(1, 1.0).key == 1
    assert (pool.waiting, charged("r1", pool)) == (1, 0)
    assert pool.check() == []


def test_a_better_rank_waits_or_does_not() -> None:
    pool = pool_of()
    queued(pool, 1)  # interactive, normal: rank 1
    assert [pool.waits_above(rank) for rank in range(6)] == [False, False, True, True, True, True]


def test_the_bound_in_tokens_is_the_safe_budgets_that_are_up_unless_one_is_set() -> None:
    pool = pool_of(spec("r1"), spec("r2"))
    lane = POLICY.lanes[INTERACTIVE]
    assert pool.most_queued_tokens(lane) == 172_800
    pool.replicas["r2"].up = False
    assert pool.most_queued_tokens(lane) == 86_400
    bounded = queueing_lanes(7, queue_tokens=5_000)[INTERACTIVE]
    queued(pool, 1, 900, 100)
    terms = pool.queue_terms(INTERACTIVE, bounded)
    assert (terms.requests, terms.tokens, terms.most_requests, terms.most_tokens) == (1, 1_000, 7, 5_000)


def test_it_is_due_when_something_changed_or_the_time_came() -> None:
    pool = pool_of()
    assert (pool.is_due(0.0), pool.next_wakeup()) == (False, None)
    queued(pool, 1)
    assert pool.is_due(0.0)  # a newcomer may start
    pool.changed = False
    assert not pool.is_due(5.0)
    assert pool.next_wakeup() == 10.0  # its residence
    pool.look_at = 4.0
    assert pool.next_wakeup() == 4.0
    assert (pool.is_due(3.9), pool.is_due(4.0)) == (False, True)
    running(pool, 2, 10, 10)
    pool.look_at = None
    pool.give_back(pool.replicas["r1"], 2, 1.0)
    assert pool.is_due(1.0)


def test_expired_requests_are_taken_out_to_the_instant() -> None:
    pool = pool_of()
    queued(pool, 1, now=0.0)
    queued(pool, 2, now=1.0)
    assert pool.take_expired(9.999) == []
    assert [waiting.key for waiting in pool.take_expired(10.0)] == [1]
    assert (pool.next_expiry(), charged("r1", pool), pool.check()) == (11.0, 500, [])


def test_a_waiting_request_moves_to_the_replica_with_the_least_waiting_work_that_could_hold_it() -> None:
    pool = pool_of(spec("r1"), spec("r2", gross_ceiling_tokens=1_000), spec("r3"), spec("r4"))
    moved = queued(pool, 1, 4_000, 1_000)
    queued(pool, 2, replica="r3")
    assert pool.move_to_another(moved)
    assert (moved.replica, charged("r1", pool), charged("r4", pool)) == ("r4", 0, 5_000)
    assert pool.check() == []
    for name in ("r1", "r3"):
        pool.replicas[name].up = False
    assert not pool.move_to_another(moved)
    assert (moved.replica, pool.check()) == ("r4", [])


def test_a_move_gives_the_shadow_reservation_back() -> None:
    pool = pool_of(spec("r1"), spec("r2"))
    first = pool.replicas["r1"]
    moved = first.shadow = queued(pool, 1)
    assert pool.move_to_another(moved)
    assert first.held_tokens(2) == 0
    assert pool.check() == []


def test_what_a_waiting_request_would_hold_elsewhere() -> None:
    pool = pool_of(spec("r1"), spec("r2", overrun_chunk_tokens=1_024), spec("r3", max_shared_prompt_tokens=8_000))
    waiting = queued(pool, 1, 9_000, 1_500, BULK)
    held = [pool.reservation_on(waiting, replica) for replica in pool]
    assert [None if one is None else one.total_tokens for one in held] == [10_500, 11_048, None]


def test_what_was_not_used_is_given_back_to_the_tenants_share() -> None:
    """Of a 1,000-token reservation 900 + 10 were used: its tenant comes before one that was served 950."""
    pool = pool_of()
    for key, tenant in ((1, "acme"), (2, "other")):
        queued(pool, key, tenant=tenant)
    queue = pool.queues[INTERACTIVE]
    running(pool, 3, 900, 100, now=1.0)
    queue.served("other", 1.0, 950)
    order = [waiting.tenant for waiting in queue.in_order(PriorityClass.NORMAL, 0.0)]
    assert order == ["other", "acme"]
    pool.settle(pool.replicas["r1"].ledger[3], 1.0, 10)
    assert [waiting.tenant for waiting in queue.in_order(PriorityClass.NORMAL, 0.0)] == ["acme", "other"]


def test_the_state_tells_depth_and_age() -> None:
    pool = pool_of()
    queued(pool, 1, now=2.0)
    queued(pool, 2, 9_000, 1_000, BULK, PriorityClass.LOW, now=3.0)
    state = pool.state(5.0)
    assert state.oldest_age_seconds == {INTERACTIVE: 3.0, BULK: 2.0}
    waits = {(queue.lane, queue.priority_class): queue.tokens for queue in state.queues if queue.requests}
    assert waits == {(INTERACTIVE, PriorityClass.NORMAL): 500, (BULK, PriorityClass.LOW): 10_000}


def test_an_invariant_that_is_broken_is_told() -> None:
    pool = pool_of()
    waiting = queued(pool, 1)
    replica = pool.replicas["r1"]
    replica.queued[1].tokens += 1
    assert any("is charged with" in sentence for sentence in pool.check())
    replica.queued[1].tokens -= 1
    replica.shadow = waiting
    pool.queues[INTERACTIVE].leave(1)
    assert any("holds the shadow reservation" in sentence for sentence in pool.check())
