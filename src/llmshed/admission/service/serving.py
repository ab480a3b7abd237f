"""Who is dispatched next when something came free: the order of service, who may pass whom, the shadow reservation.

Ranks are served in order, and inside a rank in the fair order of its queue. One who does not fit is passed by those
behind it of the same rank; nobody of a lower rank goes while anybody of a higher one waits, except bulk within its
floor. Who has used half of its residence, or is covered by bulk's floor credit, takes the shadow reservation of its
replica: freed tokens then accrue to it.
"""

from collections.abc import Sequence
from itertools import islice

from llmshed.admission.queueing.waiting import Waiting
from llmshed.admission.request import Lane
from llmshed.admission.service.choice import MOST_LOOKED_AT
from llmshed.admission.service.fitting import Candidate, fits, has_room, may_hold_shadow
from llmshed.admission.service.pool import RANKED, Pool
from llmshed.admission.service.replica import KEPT_FOR_INTERACTIVE_SECONDS, AwaitedReplica


def next_start(pool: Pool, now: float) -> tuple[Waiting, AwaitedReplica] | None:
    """Return the next waiting request that may be dispatched, and where; None when none may.

    The caller dispatches it and asks again. On None `pool.look_at` says when time alone may change the answer.
    """
    pool.look_at = None
    pool.changed = False
    above_waits = False
    ranks = pool.waiting_ranks()
    interactive_waits = bool(ranks) and RANKED[ranks[0]][0] is Lane.INTERACTIVE
    _end_shadows(pool, ranks, now, interactive_waits=interactive_waits)
    if interactive_waits:
        _let_floor_come_first(pool, ranks, now)
    for rank in ranks:
        lane, priority_class = RANKED[rank]
        floor_only = above_waits and lane is Lane.BULK
        if above_waits and not floor_only:
            continue
        head = pool.head(rank, now)
        _shadow(head, pool, now, interactive_waits=interactive_waits)
        looked, roomy = [head, *_holders(pool, rank)], _roomy(pool, rank)
        usable = [replica for replica in roomy if replica.window.admits(lane, 0, now)]
        found = _first_fit(looked, usable, pool, now, floor_only=floor_only)
        if found is None and roomy:
            rest = list(islice(pool.queues[lane].in_order(priority_class, now), 1, MOST_LOOKED_AT))
            found = _first_fit(rest, usable, pool, now, floor_only=floor_only)
            looked += rest
        if found is not None:
            return found
        _look_again(looked, roomy, pool, now)
        if lane is Lane.BULK:
            return None
        above_waits = True
    return None


def _holders(pool: Pool, rank: int) -> list[Waiting]:
    """Return who of a rank holds shadow reservations: what comes free is theirs, so they are tried wherever they stand.

    They were first when they took it, and may stand behind more by now than are looked at.
    """
    return [r.shadow for r in pool if r.shadow is not None and r.shadow.rank == rank]


def _roomy(pool: Pool, rank: int) -> list[AwaitedReplica]:
    """Return the replicas that could hold the smallest who waits with a rank: mostly none, and nobody need be tried."""
    least_tokens = pool.least_tokens(rank)
    return [r for r in pool if r.up and r.free_tokens >= least_tokens and r.free_sequences > 0]


def _first_fit(
    looked: Sequence[Waiting], usable: Sequence[AwaitedReplica], pool: Pool, now: float, *, floor_only: bool
) -> tuple[Waiting, AwaitedReplica] | None:
    if not usable:
        return None
    for waiting in looked:
        fitting = [r for r in usable if _fits_on(waiting, r, pool, now, floor_only=floor_only)]
        if len(fitting) == 1:
            return waiting, fitting[0]
        if fitting:
            return waiting, min(fitting, key=lambda replica: (replica.window.busy_seconds(now), replica.spec.name))
    return None


def _fits_on(waiting: Waiting, replica: AwaitedReplica, pool: Pool, now: float, *, floor_only: bool) -> bool:
    reservation = pool.reservation_on(waiting, replica)
    if reservation is None:
        return False
    return fits(Candidate(waiting.key, waiting.chosen.lane, reservation, floor_only), replica, now)


def _shadow(head: Waiting, pool: Pool, now: float, *, interactive_waits: bool) -> None:
    """Give the first of its rank the shadow reservation of its replica, if it is due and nobody else has it."""
    replica = pool.replicas[head.replica]
    if (
        replica.shadow is None
        and replica.up
        and may_hold_shadow(head, replica, now, interactive_waits=interactive_waits)
    ):
        replica.shadow = head


def _let_floor_come_first(pool: Pool, ranks: Sequence[int], now: float) -> None:
    """Give a vacant shadow reservation to bulk that its floor covers, before interactive work that has waited long.

    While such work always waits, bulk would never come to it; how often it does is bounded by the floor.
    """
    rank = next((rank for rank in ranks if RANKED[rank][0] is Lane.BULK), None)
    if rank is not None:
        _shadow(pool.head(rank, now), pool, now, interactive_waits=True)


def _end_shadows(pool: Pool, ranks: Sequence[int], now: float, *, interactive_waits: bool) -> None:
    """Take shadow reservations back that are held for nothing.

    What keeps their holder out is not what comes free, or somebody of its lane goes before it.
    """
    for replica in pool:
        holder = replica.shadow
        if holder is None:
            continue
        first = next((rank for rank in ranks if RANKED[rank][0] is holder.chosen.lane), holder.rank)
        if first < holder.rank or not may_hold_shadow(holder, replica, now, interactive_waits=interactive_waits):
            replica.shadow = None


def _look_again(looked: Sequence[Waiting], roomy: Sequence[AwaitedReplica], pool: Pool, now: float) -> None:
    """Note when one of those tried may start, or the first comes to its shadow reservation, by time alone."""
    lane = looked[0].chosen.lane
    times = [looked[0].ages_at]
    for replica in roomy:
        ready_at = _ready_at(looked, replica, now)
        if ready_at is not None:
            times.append(ready_at)
    if lane is Lane.BULK:  # it is held to no part of the budget once interactive work has not come for long
        times += [
            r.interactive_at + KEPT_FOR_INTERACTIVE_SECONDS for r in pool if r.up and r.interactive_at is not None
        ]
    ahead = [at for at in times if at > now]
    if ahead:
        pool.look_at = min(ahead) if pool.look_at is None else min(pool.look_at, *ahead)


def _ready_at(looked: Sequence[Waiting], replica: AwaitedReplica, now: float) -> float | None:
    """Return when the window lets in the smallest prompt of those that have room; None when time alone never does."""
    lane = looked[0].chosen.lane
    candidates = [Candidate(waiting.key, lane, waiting.reservation) for waiting in looked]
    prompts = [one.reservation.input_tokens for one in candidates if has_room(one, replica, now)]
    return replica.window.ready_at(lane, min(prompts), now) if prompts else None
