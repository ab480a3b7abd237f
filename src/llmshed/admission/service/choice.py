"""The choice between replicas: dispatch where the first token comes soonest, queue where it would, or refuse.

The term that binds is told as the reason, in this order: the request's own deadline, seats, the room of the lane's
queue, and last the lane's residence by the later of its two terms, tokens or prefill.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from llmshed.admission.echo import Arrival
from llmshed.admission.explain import fit_sentence, wait_sentence
from llmshed.admission.lanes import Classification
from llmshed.admission.options import Option
from llmshed.admission.policy import LanePolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.request import CLASSES, Lane
from llmshed.admission.service.fitting import Candidate, fits
from llmshed.admission.service.foresight import Asker, Foresight, Outlook, foresee, outlook_of, spare_seconds
from llmshed.admission.service.pool import Pool
from llmshed.admission.service.replica import AwaitedReplica
from llmshed.admission.verdict import Decision, DelayTerms, Verdict

MOST_LOOKED_AT = 16
"""Waiting requests of one rank that are tried for their fit, first to last: a longer look would cost more than it finds
room for, and what a newcomer may pass is bounded by it too."""
UNKNOWN_RETRY_SECONDS = 60.0
"""Wait told when no release can be foreseen, as under a derated budget that is smaller than the request."""


class Place(NamedTuple):
    """One replica where a request could run, with its pool."""

    option: Option
    replica: AwaitedReplica
    pool: Pool


def choose(
    places: Sequence[Place],
    asker: Asker,
    chosen: Classification,
    now: float,
    arrival: Arrival | None = None,
    *,
    may_wait: bool,
) -> Verdict:
    """Return the verdict on a request that some replica could hold; nothing is changed.

    Args:
        places: where it could run, at least one.
        asker: the request at its place in the order of service.
        chosen: its classification.
        now: clock reading, in seconds.
        arrival: whether it was seen before, to be told in the verdict.
        may_wait: whether a schedule is known by which it could wait.
    """
    open_places = [place for place in places if may_start(place, asker, now)]
    if asker.hurries:
        open_places = [place for place in open_places if _starts_in_time(place, asker, now)]
    if open_places:
        return _admit(_soonest(open_places, now), asker, chosen, now, arrival)
    if not may_wait:
        return _refuse_without_schedule(places, asker, chosen, now, arrival)
    best, pool = _soonest_foreseen(places, asker, now)
    reason = _binding(best, places, asker, pool, now)
    equation = best.replica.equation_before(best.delay.tokens_ahead)
    queue = pool.queue_terms(asker.lane, asker.lane_policy)
    delay, retry_after_seconds, detail = best.delay, None, ""
    if reason is not None:
        promised_seconds = pool.learnt.promised_seconds(asker.rank, now)
        delay, retry_after_seconds = _told(delay, promised_seconds)
        if asker.repeat:  # its share decides, but it is told when the work ahead has drained, as anybody is
            as_first = foresee(replace(asker, repeat=False), best.option, best.replica, pool, now)
            _, retry_after_seconds = _told(as_first.delay, promised_seconds)
        detail = wait_sentence(best.option.reservation, equation, delay, queue)
    return best.option.verdict(
        Decision.QUEUE if reason is None else Decision.REFUSE,
        chosen,
        asker.lane_policy,
        equation,
        reason=reason,
        retry_after_seconds=retry_after_seconds,
        detail=detail,
        delay=delay,
        window=best.replica.window.terms(now),
        queue=queue,
        arrival=arrival,
    )


def may_start(place: Place, asker: Asker, now: float) -> bool:
    """Say whether a newcomer may be dispatched there at once.

    It passes those of its own rank who wait, since they were all tried and do not fit, unless more of them wait than
    are tried; it passes nobody of a better rank. A repeat passes nobody, and leaves a busy replica to first arrivals of
    its tenant while these ask for more than is dispatched.
    """
    pool, rank = place.pool, asker.rank
    if place.option.reservation.total_tokens > place.replica.free_tokens:
        return False  # as on most replicas when it matters, and seen at once
    if pool.waiting:
        same = pool.waiting_of(rank)
        if same > MOST_LOOKED_AT or (asker.repeat and same):
            return False
        if pool.waits_above(rank):
            return False
    if asker.repeat and not place.replica.at_ease and pool.learnt.own_shares.ratio(asker.request.tenant, now) >= 1.0:
        return False
    return fits(Candidate(asker.request.key, asker.lane, place.option.reservation), place.replica, now)


def _starts_in_time(place: Place, asker: Asker, now: float) -> bool:
    """Say whether a request with a deadline of its own would keep it if it were dispatched there now."""
    return place.replica.window.busy_seconds(now) <= spare_seconds(asker, place.option, place.replica, place.pool, now)


def refused(verdict: Verdict, reason: Reason, promised_seconds: float) -> Verdict:
    """Turn the verdict that would queue into the refusal, with the wait that is told."""
    delay, wait, detail = verdict.delay, UNKNOWN_RETRY_SECONDS, ""
    if delay is not None:
        delay, wait = _told(delay, promised_seconds)
        if verdict.reservation is not None and verdict.equation is not None and verdict.queue is not None:
            detail = wait_sentence(verdict.reservation, verdict.equation, delay, verdict.queue)
    return replace(
        verdict, decision=Decision.REFUSE, reason=reason, retry_after_seconds=wait, detail=detail, delay=delay
    )


def _told(delay: DelayTerms, promised_seconds: float) -> tuple[DelayTerms, float]:
    """Return the estimate with what was promised before, and the wait that is told."""
    wait = delay.wait_seconds + promised_seconds if math.isfinite(delay.wait_seconds) else UNKNOWN_RETRY_SECONDS
    return delay._replace(promised_seconds=promised_seconds), wait


def _admit(place: Place, asker: Asker, chosen: Classification, now: float, arrival: Arrival | None) -> Verdict:
    replica = place.replica
    return place.option.verdict(
        Decision.ADMIT,
        chosen,
        asker.lane_policy,
        replica.equation_before(replica.held_tokens(asker.request.key)),
        window=replica.window.terms(now),
        queue=place.pool.queue_terms(asker.lane, asker.lane_policy),
        arrival=arrival,
    )


def _soonest(places: Sequence[Place], now: float) -> Place:
    """Return the place where the first token is foreseen first, then where most is free; the name breaks ties."""
    if len(places) == 1:
        return places[0]

    def order(place: Place) -> tuple[float, int, int, str]:
        replica = place.replica
        seconds = replica.window.busy_seconds(now) + replica.own_seconds(place.option.reservation)
        return (round(seconds, 3), -replica.free_tokens, -replica.free_sequences, replica.spec.name)

    return min(places, key=order)


def _soonest_foreseen(places: Sequence[Place], asker: Asker, now: float) -> tuple[Foresight, Pool]:
    """Return the foresight of the first token that comes soonest, and its pool; most headroom breaks ties."""

    def order(one: tuple[Foresight, Pool]) -> tuple[float, int]:
        replica = one[0].replica
        return (one[0].first_token_seconds, replica.queued_tokens - replica.free_tokens)

    foreseen: list[tuple[Foresight, Pool]] = []
    outlooks: dict[str, Outlook] = {}
    for option, replica, pool in places:
        outlook = outlooks.get(pool.name)
        if outlook is None:
            outlook = outlooks[pool.name] = outlook_of(asker, pool, now)
        foreseen.append((foresee(asker, option, replica, pool, now, outlook), pool))
    return foreseen[0] if len(foreseen) == 1 else min(foreseen, key=order)


def _refuse_without_schedule(
    places: Sequence[Place], asker: Asker, chosen: Classification, now: float, arrival: Arrival | None
) -> Verdict:
    most_free = min(places, key=lambda place: (-place.replica.free_tokens, place.replica.spec.name))
    equation = most_free.replica.equation_before(most_free.replica.held_tokens(asker.request.key))
    return most_free.option.verdict(
        Decision.REFUSE,
        chosen,
        asker.lane_policy,
        equation,
        reason=Reason.CONCURRENCY_LIMIT if _seats_bind(places) else Reason.TOKEN_BUDGET_EXHAUSTED,
        detail=fit_sentence(equation, most_free.option.reservation),
        window=most_free.replica.window.terms(now),
        arrival=arrival,
    )


def _binding(best: Foresight, places: Sequence[Place], asker: Asker, pool: Pool, now: float) -> Reason | None:
    """Return the first term that refuses, or None when the request may wait."""
    delay, lane_policy = best.delay, asker.lane_policy
    if asker.hurries:
        # Who needs no room has been kept from starting by the prompts in flight: see `_starts_in_time`.
        begins_seconds = delay.wait_seconds or best.replica.window.busy_seconds(now)
        if begins_seconds > spare_seconds(asker, best.option, best.replica, pool, now):
            return Reason.DEADLINE_INFEASIBLE
    too_long = delay.wait_seconds > lane_policy.max_residence_seconds
    if (too_long or lane_policy.queue_requests == 0) and _seats_bind(places):
        return Reason.CONCURRENCY_LIMIT
    if lane_policy.queue_requests > 0 and not _has_queue_room(best, asker, pool):
        return Reason.QUEUE_FULL
    if too_long or lane_policy.queue_requests == 0:
        return Reason.PREFILL_WINDOW_FULL if delay.prefill_binds else Reason.TOKEN_BUDGET_EXHAUSTED
    return None


def _has_queue_room(best: Foresight, asker: Asker, pool: Pool) -> bool:
    """Say whether the lane's queue takes one more, if need be in the place of those who are behind it."""
    queue, lane_policy = pool.queues[asker.lane], asker.lane_policy
    more_tokens = best.option.reservation.total_tokens
    if not overfull(pool, asker.lane, lane_policy, more_tokens):
        return True
    out = queue.displaceable_by(asker.priority_class, asker.request.tenant, asker.weight, more_tokens)
    if out is None:
        return False
    lower = CLASSES[asker.priority_class.rank + 1 :]
    going_tokens = max(out.total_tokens, sum(queue.tokens_of(cls) for cls in lower))
    # It need only not grow where it is beyond a bound that was lowered, by a reload or by a budget that shrank.
    return queue.tokens - going_tokens + more_tokens <= max(queue.tokens, pool.most_queued_tokens(lane_policy))


def overfull(pool: Pool, lane: Lane, lane_policy: LanePolicy, more_tokens: int) -> bool:
    """Say whether one more request of that many reserved tokens is more than the lane's queue holds."""
    queue = pool.queues[lane]
    too_many = len(queue) >= lane_policy.queue_requests
    return too_many or queue.tokens + more_tokens > pool.most_queued_tokens(lane_policy)


def _seats_bind(places: Sequence[Place]) -> bool:
    return all(place.option.reservation.sequences > place.replica.free_sequences for place in places)
