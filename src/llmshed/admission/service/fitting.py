"""Whether a request may be dispatched to a replica now: tokens, seats, the share of its lane, the prefill window."""

from typing import NamedTuple

from llmshed.admission.budget import Reservation
from llmshed.admission.queueing.waiting import Waiting
from llmshed.admission.request import Lane
from llmshed.admission.service.replica import AwaitedReplica


class Candidate(NamedTuple):
    """A request that might go to a replica.

    Args:
        key: the request.
        lane: its lane.
        reservation: what it would hold there.
        floor_only: whether it may go only as work within bulk's floor, since interactive work waits.
    """

    key: int
    lane: Lane
    reservation: Reservation
    floor_only: bool = False


def fits(candidate: Candidate, replica: AwaitedReplica, now: float) -> bool:
    """Say whether the request may be dispatched there now."""
    return has_room(candidate, replica, now) and passes_window(candidate, replica, now)


def has_room(candidate: Candidate, replica: AwaitedReplica, now: float) -> bool:
    """Say whether tokens and seats suffice, beside what is kept for the holder of the shadow reservation."""
    reservation, key = candidate.reservation, candidate.key
    tokens = reservation.total_tokens
    if tokens > replica.free_tokens - replica.held_tokens(key) - replica.queued_tokens:
        return False
    if reservation.sequences > replica.free_sequences - replica.held_sequences(key):
        return False
    if candidate.lane is not Lane.BULK:
        return True
    bulk = replica.budget.bulk
    ratio = bulk.reserved_floor_ratio if candidate.floor_only else bulk.reserved_max_ratio
    return tokens <= replica.bulk_room_tokens(ratio, now)


def passes_window(candidate: Candidate, replica: AwaitedReplica, now: float) -> bool:
    """Say whether the prefill window lets its prompt in.

    The holder of the shadow reservation may exceed the bound on what is in flight, by one prompt: smaller ones would
    keep less than its own room in flight for ever.
    """
    prompt_tokens = candidate.reservation.input_tokens
    if candidate.floor_only and not replica.window.within_floor(prompt_tokens, now):
        return False
    if replica.shadow is not None and replica.shadow.key == candidate.key:
        return replica.window.admits_beyond_flight(candidate.lane, prompt_tokens, now)
    return replica.window.admits(candidate.lane, prompt_tokens, now)


def may_hold_shadow(waiting: Waiting, replica: AwaitedReplica, now: float, *, interactive_waits: bool) -> bool:
    """Say whether freed tokens may accrue to a waiting request, so that it lacks nothing that they do not bring.

    Interactive work may from half its residence on. Bulk may when the floor covers it, and from half its residence on
    while no interactive work waits; never while its own part of the budget or its cap is what keeps it out. Nobody may
    who is larger than a derated budget.
    """
    budget = replica.budget
    if waiting.total_tokens > budget.safe_budget_tokens or waiting.sequences > budget.hard_cap_sequences:
        return False
    aged = now >= waiting.ages_at
    if waiting.chosen.lane is not Lane.BULK or not replica.shared:
        return aged
    tokens, bulk = waiting.total_tokens, budget.bulk
    if replica.window.within_floor(waiting.input_tokens, now):
        return tokens <= replica.bulk_room_tokens(bulk.reserved_floor_ratio, now)
    if not aged or interactive_waits or not replica.window.under_cap(now):
        return False
    return tokens <= replica.bulk_room_tokens(bulk.reserved_max_ratio, now)
