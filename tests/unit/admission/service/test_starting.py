"""From the verdict that queues to the dispatch."""

from dataclasses import replace

import pytest

from fakes.door import policy, queueing_lanes, request, spec
from fakes.pools import POLICY, pool_of, queued, running, waiter
from llmshed.admission.echo import Arrival
from llmshed.admission.policy import TenantPolicy
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.service.starting import admitted_verdict, make_room, waiting_of
from llmshed.admission.verdict import Decision, DelayTerms

DELAY = DelayTerms(0, 0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.4)


def test_a_wait_ends_with_the_residence_or_with_the_last_useful_start() -> None:
    """400 tokens at 1,000 a second are 0.4 s of prefill, 100 tokens at 0.1 s are 10 s more; it joins at 2 s."""
    of = policy(lanes=queueing_lanes(), tenants={"acme": TenantPolicy("acme", weight=3.0)})
    pool = pool_of(spec(prefill_tokens_per_second=1_000.0, decode_seconds_per_token=0.1))
    verdict = waiter(pool, 1).verdict
    for first_token_deadline, deadline, ends in [
        (None, None, 12.0),
        (9.0, None, 8.6),
        (None, 21.0, 10.6),
        (None, 50.0, 12.0),
        (9.0, 21.0, 8.6),
    ]:
        hurried = request(1, deadline=deadline, first_token_deadline=first_token_deadline)
        made = waiting_of(hurried, of, verdict, pool, 2.0, 2.0)
        assert made.expires_at == pytest.approx(ends)
        assert (made.joined_at, made.weight, made.replica, made.total_tokens) == (2.0, 3.0, "r1", 500)


def test_a_verdict_that_does_not_say_where_is_no_place_in_a_queue() -> None:
    pool = pool_of()
    with pytest.raises(ValueError, match="names lane"):
        waiting_of(request(1), POLICY, replace(waiter(pool, 1).verdict, replica=None), pool, 0.0, 0.0)


def test_room_is_made_by_the_newest_of_the_lowest_class() -> None:
    of = policy(lanes=queueing_lanes(3))
    pool = pool_of()
    for key, cls in enumerate((PriorityClass.LOW, PriorityClass.NORMAL, PriorityClass.LOW)):
        queued(pool, key, 400, 100, Lane.INTERACTIVE, cls, of=of, now=float(key))
    newcomer = waiter(pool, 9, 400, 100, Lane.INTERACTIVE, PriorityClass.HIGH, of=of, now=4.0)
    assert [out.key for out in make_room(newcomer, pool, 4.0)] == [2]
    assert (pool.waiting, pool.check()) == (2, [])
    assert list(make_room(newcomer, pool, 4.0)) == []


def test_as_many_go_as_make_room_for_its_tokens() -> None:
    of = policy(lanes=queueing_lanes(queue_tokens=2_000))
    pool = pool_of()
    for key in range(4):
        queued(pool, key, 400, 100, Lane.INTERACTIVE, PriorityClass.LOW, of=of)
    newcomer = waiter(pool, 9, 900, 100, Lane.INTERACTIVE, PriorityClass.HIGH, of=of)
    assert [out.key for out in make_room(newcomer, pool, 0.0)] == [3, 2]


@pytest.mark.parametrize("lowered", [{"requests": 2}, {"queue_tokens": 1_000}])
@pytest.mark.parametrize(("tokens", "gone"), [(500, [9]), (501, [9, 8])])
def test_a_queue_beyond_a_bound_that_was_lowered_is_not_emptied_for_one(
    lowered: dict[str, int], tokens: int, gone: list[int]
) -> None:
    """Ten of 500 tokens wait: who comes takes as much as it needs, not what the others wait with beyond the bound."""
    pool = pool_of()
    for key in range(10):
        queued(pool, key, 400, 100, Lane.INTERACTIVE, PriorityClass.LOW, of=policy(lanes=queueing_lanes()))
    of = policy(lanes=queueing_lanes(**lowered))
    newcomer = waiter(pool, 99, tokens - 100, 100, Lane.INTERACTIVE, PriorityClass.HIGH, of=of)
    assert [out.key for out in make_room(newcomer, pool, 0.0)] == gone


def test_the_verdict_that_dispatches_tells_the_terms_of_now_and_the_estimate_of_then() -> None:
    pool = pool_of()
    waiting = queued(pool, 1)
    waiting.verdict = replace(waiting.verdict, delay=DELAY, arrival=Arrival.REPEAT)
    running(pool, 2, 58_000, 8_000)
    pool.leave(1, 1.0)
    verdict = admitted_verdict(waiting, pool.replicas["r1"], pool, 1.0)
    assert (verdict.decision, verdict.reason, verdict.arrival) == (Decision.ADMIT, None, Arrival.REPEAT)
    assert verdict.delay == DELAY
    assert verdict.equation is not None
    assert verdict.equation.headroom_tokens == 20_400
    assert verdict.queue is not None
    assert verdict.queue.requests == 0


def test_one_that_comes_from_another_queue_has_one_residence_in_all() -> None:
    pool = pool_of(spec())
    verdict = waiter(pool, 1).verdict
    made = waiting_of(request(1), POLICY, verdict, pool, 3.0, 10.0)
    assert verdict.lane is not None
    assert (made.joined_at, made.expires_at) == (3.0, 3.0 + POLICY.lanes[verdict.lane].max_residence_seconds)
