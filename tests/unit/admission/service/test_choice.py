"""Dispatch, queue or refuse, and the term that binds, in its order."""

import math
from dataclasses import replace
from typing import Any

import pytest

from fakes.door import policy, queueing_lanes, spec
from fakes.pools import INTENTS, asker_of, charge, places_of, pool_of, queued, running, waiter
from llmshed.admission.lanes import Classification
from llmshed.admission.policy import AdmissionPolicy, ReplicaSpec
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.service.choice import (
    MOST_LOOKED_AT,
    UNKNOWN_RETRY_SECONDS,
    choose,
    may_start,
    overfull,
    refused,
)
from llmshed.admission.service.foresight import Asker
from llmshed.admission.service.pool import Pool
from llmshed.admission.verdict import Decision, DelayTerms, Verdict

BULK = Lane.BULK
HIGH, LOW = PriorityClass.HIGH, PriorityClass.LOW


def small(**changes: Any) -> ReplicaSpec:
    """Return a replica of 1,000 tokens; its prompts go in at the assumed 1,000 a second, its decode takes 10 ms."""
    given: dict[str, Any] = {"gross_ceiling_tokens": 1_000, "guard_band_ratio": 0.0, "decode_seconds_per_token": 0.01}
    return spec(**given | changes)


def chosen(pool: Pool, asker: Asker, now: float = 0.0, *, may_wait: bool = True) -> Verdict:
    classification = Classification(INTENTS[asker.lane], asker.priority_class, asker.lane)
    return choose(places_of(pool, asker), asker, classification, now, may_wait=may_wait)


def bounded(**changes: Any) -> AdmissionPolicy:
    return policy(lanes=queueing_lanes(**changes))


def test_what_fits_is_dispatched_with_the_terms_before_its_charge() -> None:
    pool = pool_of()
    running(pool, 1, 58_000, 8_000)
    verdict = chosen(pool, asker_of(14_000, 4_000))
    assert (verdict.decision, verdict.reason, verdict.replica) == (Decision.ADMIT, None, "r1")
    assert verdict.equation is not None
    assert verdict.equation.headroom_tokens == 20_400
    assert verdict.delay is None


def test_what_does_not_fit_waits_if_it_will_start_within_its_residence() -> None:
    """The one that runs ends after 0.9 s of prefill and 1 s of decode."""
    pool = pool_of(small())
    running(pool, 1, 900, 100)
    verdict = chosen(pool, asker_of(400, 100))
    assert (verdict.decision, verdict.reason, verdict.retry_after_seconds) == (Decision.QUEUE, None, None)
    assert verdict.delay is not None
    assert verdict.delay.wait_seconds == pytest.approx(1.9, rel=0.01)
    assert verdict.queue is not None
    assert (verdict.queue.requests, verdict.queue.most_requests) == (0, 100)


@pytest.mark.parametrize(
    ("replica", "of", "asked", "expected"),
    [
        # all five terms bind at once, then one less each time
        ({"hard_cap_sequences": 1}, {"requests": 1, "residence_seconds": 1.0}, 1.0, Reason.DEADLINE_INFEASIBLE),
        ({"hard_cap_sequences": 1}, {"requests": 1, "residence_seconds": 1.0}, None, Reason.CONCURRENCY_LIMIT),
        ({}, {"requests": 1, "residence_seconds": 1.0}, None, Reason.QUEUE_FULL),
        ({}, {"queue_tokens": 400, "residence_seconds": 1.0}, None, Reason.QUEUE_FULL),
        ({}, {"residence_seconds": 1.0}, None, Reason.TOKEN_BUDGET_EXHAUSTED),
        ({}, {"requests": 0}, None, Reason.TOKEN_BUDGET_EXHAUSTED),
        ({"hard_cap_sequences": 1}, {"requests": 0}, None, Reason.CONCURRENCY_LIMIT),
        ({}, {}, None, None),
    ],
)
def test_the_first_term_that_binds_is_the_reason(
    replica: dict[str, int], of: dict[str, float], asked: float | None, expected: Reason | None
) -> None:
    pool = pool_of(small(**replica))
    running(pool, 1, 900, 100)
    queued(pool, 2, 80, 20, of=bounded(**of))
    verdict = chosen(pool, asker_of(400, 100, of=bounded(**of), first_token_deadline=asked))
    assert verdict.reason is expected
    assert verdict.decision is (Decision.QUEUE if expected is None else Decision.REFUSE)
    if expected is not None:
        assert verdict.delay is not None
        assert verdict.retry_after_seconds == pytest.approx(verdict.delay.wait_seconds)
        assert verdict.detail


def test_prefill_is_told_where_it_is_the_later_term() -> None:
    """At 1,000 a second 4,000 tokens of prompts take 4 s, and the replica has room for all of them."""
    pool = pool_of(spec(prefill_tokens_per_second=1_000.0, prefill_inflight_tokens=1_000))
    running(pool, 1, 4_000, 100)
    of = bounded(residence_seconds=2.0)
    verdict = chosen(pool, asker_of(400, 100, of=of))
    assert verdict.reason is Reason.PREFILL_WINDOW_FULL
    assert verdict.delay is not None
    assert verdict.delay.prefill_seconds > 2.0 > verdict.delay.release_seconds
    assert "prompt tokens" in verdict.detail
    assert chosen(pool, asker_of(400, 100)).decision is Decision.QUEUE


def test_a_deadline_is_told_though_room_is_free() -> None:
    """Its own prompt takes 0.4 s."""
    pool = pool_of(spec(prefill_tokens_per_second=1_000.0))
    assert chosen(pool, asker_of(400, 100, first_token_deadline=0.39)).reason is Reason.DEADLINE_INFEASIBLE
    assert chosen(pool, asker_of(400, 100, first_token_deadline=0.41)).decision is Decision.ADMIT


def test_a_deadline_that_prompts_in_flight_use_up_is_told_and_not_waited_for() -> None:
    """At 0.7 s the window is open again, and 200 tokens of the prompt before are left to do: 0.2 s, and 0.4 its own."""
    pool = pool_of(spec(prefill_tokens_per_second=1_000.0))
    running(pool, 100, 900, 100)
    for deadline, decision in ((1.25, Decision.REFUSE), (1.35, Decision.ADMIT)):
        verdict = chosen(pool, asker_of(400, 100, first_token_deadline=deadline), 0.7)
        assert (verdict.decision, verdict.reason is Reason.DEADLINE_INFEASIBLE) == (decision, deadline == 1.25)


def test_of_several_replicas_the_first_token_decides() -> None:
    """The second has more free, and the first is done with its prompts sooner."""
    pool = pool_of(spec("r1"), spec("r2"))
    first, second = pool
    first.take(charge(1, 60_000, 100), 0.0)
    first.first_token(1, 60.0)
    second.take(charge(2, 3_000, 100), 59.0)
    assert chosen(pool, asker_of(), 60.0).replica == "r1"
    second.first_token(2, 62.0)
    assert chosen(pool, asker_of(), 62.0).replica == "r2"


def test_where_no_replica_has_room_it_waits_for_the_one_that_has_it_first() -> None:
    pool = pool_of(small(name="r1"), small(name="r2"))
    for replica, output in zip(pool, (200, 100), strict=True):
        replica.take(charge(1, 800, output), 0.0)
    assert chosen(pool, asker_of(400, 100)).replica == "r2"


def test_a_newcomer_passes_its_own_rank_but_none_above_and_no_long_line() -> None:
    pool = pool_of(small())
    running(pool, 1, 400, 100)
    queued(pool, 2, 500, 500)  # does not fit

    def starts(asker: Asker) -> bool:
        (place,) = places_of(pool, asker)
        return may_start(place, asker, 0.0)

    assert starts(asker_of(100, 100))
    assert starts(asker_of(100, 100, priority_class=HIGH))
    assert not starts(asker_of(100, 100, priority_class=LOW))
    assert not starts(asker_of(100, 100, BULK))
    assert not starts(asker_of(100, 100, repeat=True))
    for key in range(3, 3 + MOST_LOOKED_AT):
        queued(pool, key, 500, 500)
    assert not starts(asker_of(100, 100))


def test_a_queue_is_full_by_number_or_by_tokens() -> None:
    pool = pool_of(small())
    queued(pool, 1, 400, 100)
    lane = Lane.INTERACTIVE
    for of, more, full in [
        (bounded(requests=1), 1, True),
        (bounded(requests=2), 500, False),
        (bounded(requests=2), 501, True),  # the safe budget is 1,000
        (bounded(requests=2, queue_tokens=2_000), 1_500, False),
        (bounded(requests=2, queue_tokens=2_000), 1_501, True),
    ]:
        assert overfull(pool, lane, of.lanes[lane], more) is full


def test_a_full_queue_has_room_for_who_displaces() -> None:
    """One of a higher class does, and one of a tenant that waits with less; one of the same tenant does not."""
    of = bounded(requests=2)
    pool = pool_of(small())
    running(pool, 1, 900, 100)
    for key in (2, 3):
        queued(pool, key, 80, 20, of=of)
    assert chosen(pool, asker_of(80, 20, of=of)).reason is Reason.QUEUE_FULL
    assert chosen(pool, asker_of(80, 20, priority_class=HIGH, of=of)).decision is Decision.QUEUE
    assert chosen(pool, asker_of(80, 20, of=of, tenant="other")).decision is Decision.QUEUE
    assert chosen(pool, asker_of(80, 20, priority_class=LOW, of=of)).reason is Reason.QUEUE_FULL
    big = bounded(requests=2, queue_tokens=400)
    assert chosen(pool, asker_of(400, 100, priority_class=HIGH, of=big)).reason is Reason.QUEUE_FULL


def test_a_queue_beyond_a_bound_that_was_lowered_has_room_for_who_displaces_as_much_as_it_brings() -> None:
    """200 tokens wait where 100 may: one of a higher class takes places, but does not let the queue grow."""
    pool = pool_of(small())
    running(pool, 1, 900, 100)
    for key in (2, 3):
        queued(pool, key, 80, 20, of=bounded(requests=9))
    lowered = bounded(requests=9, queue_tokens=100)
    for input_tokens, decision in [(80, Decision.QUEUE), (180, Decision.QUEUE), (181, Decision.REFUSE)]:
        assert chosen(pool, asker_of(input_tokens, 20, priority_class=HIGH, of=lowered)).decision is decision
    assert chosen(pool, asker_of(80, 20, of=lowered)).reason is Reason.QUEUE_FULL


def test_without_a_schedule_nothing_waits() -> None:
    pool = pool_of(small(hard_cap_sequences=2))
    running(pool, 1, 900, 100)
    assert chosen(pool, asker_of(), may_wait=False).reason is Reason.TOKEN_BUDGET_EXHAUSTED
    running(pool, 2, 0, 1)
    verdict = chosen(pool, asker_of(), may_wait=False)
    assert (verdict.reason, verdict.delay) == (Reason.CONCURRENCY_LIMIT, None)
    assert "2 of 2 sequences run" in verdict.detail


def test_a_refusal_tells_its_wait_with_what_was_promised_before() -> None:
    delay = DelayTerms(0, 0, 2.0, 0.0, 1.0, 1.0, 2.0, 0.4)
    waits = replace(waiter(pool_of(), 1).verdict, delay=delay)
    told = refused(waits, Reason.QUEUE_FULL, 3.0)
    assert (told.retry_after_seconds, told.decision, told.reason) == (5.0, Decision.REFUSE, Reason.QUEUE_FULL)
    assert told.delay is not None
    assert told.delay.promised_seconds == 3.0
    endless = refused(replace(waits, delay=delay._replace(wait_seconds=math.inf)), Reason.QUEUE_FULL, 3.0)
    assert endless.retry_after_seconds == UNKNOWN_RETRY_SECONDS


def test_a_repeat_is_decided_by_what_first_arrivals_leave_and_told_when_the_work_ahead_has_drained() -> None:
    pool = pool_of(small())
    running(pool, 1, 900, 100)
    pool.learnt.own_shares.asked("acme", 1_000, 0.0)
    first, again = chosen(pool, asker_of(400, 100)), chosen(pool, asker_of(400, 100, repeat=True))
    assert first.delay is not None
    assert again.delay is not None
    assert (first.decision, again.decision) == (Decision.QUEUE, Decision.REFUSE)
    assert again.delay.wait_seconds == pytest.approx(50 * first.delay.wait_seconds)
    assert again.retry_after_seconds == first.delay.wait_seconds
