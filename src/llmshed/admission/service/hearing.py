"""What pools hear of requests: who came, who left a queue after which wait; estimates and ladders learn from it."""

from collections.abc import Mapping

from llmshed.admission.echo import Arrival, EchoBook
from llmshed.admission.options import options_on
from llmshed.admission.policy import LanePolicy
from llmshed.admission.queueing.waiting import Waiting
from llmshed.admission.request import Lane, Request
from llmshed.admission.service.charging import reservation_of
from llmshed.admission.service.pool import Pool
from llmshed.admission.service.roster import Roster
from llmshed.admission.verdict import Decision, Verdict
from llmshed.ladder.model import RungAction


def hear_arrival(
    request: Request, verdict: Verdict, roster: Roster, lanes: Mapping[Lane, LanePolicy], now: float
) -> None:
    """Tell the pools of an arrival, whatever became of it."""
    if verdict.lane is Lane.INTERACTIVE:
        for serving in roster.serving(request.model, Lane.INTERACTIVE):
            serving.interactive_came(now)
    pool = roster.pools.get(verdict.pool or "")
    if pool is None or verdict.reservation is None:
        return
    if pool.laddering is not None and not request.drilled:
        pool.laddering.decided(verdict)
    # Neither what is too large nor what is beyond a quota could have been served here.
    servable = verdict.decision is not Decision.REFUSE or verdict.delay is not None or verdict.rung is not None
    if verdict.arrival is not Arrival.FIRST or not servable:
        return
    pool.first_came(verdict, request.tenant, now)
    meant_for = pool if request.moved_from is None else roster.pools.get(request.moved_from)
    if meant_for is not None and meant_for.laddering is not None and not request.drilled:
        meant_for.laddering.offered(_asked_tokens(request, verdict, pool, lanes))


def hear_wait(waiting: Waiting, pool: Pool, ended_at: float, now: float) -> None:
    """Let estimates learn now from a wait that ended, by a dispatch or because it was too long."""
    if waiting.verdict.delay is not None and waiting.verdict.arrival is Arrival.FIRST:
        pool.learnt.waited(waiting.rank, waiting.verdict.delay, ended_at - waiting.joined_at, now)


def hear_leaving(waiting: Waiting, pool: Pool, now: float, refusal: Verdict | None = None) -> None:
    """Tell a pool's ladder of one that left its queue, whatever came next.

    Who is refused after a wait counts with that, or with what a newcomer like it would wait if that is longer: one that
    is sent away early tells of an overload no less than one that was never let wait.
    """
    if pool.laddering is None or waiting.request.drilled:
        return
    seconds = min(now, waiting.expires_at) - waiting.joined_at
    if refusal is not None and refusal.delay is not None:
        seconds = max(seconds, refusal.delay.wait_seconds)
    pool.laddering.waited(waiting.chosen.lane, seconds)


def hear_refusal(request: Request, verdict: Verdict, echoes: EchoBook, pools: Mapping[str, Pool], now: float) -> None:
    """Remember what was told to a refused client, and for whom room was promised.

    A rung promises no room: whoever it refused is known when it comes again, and may come at any time.
    """
    if verdict.arrival is Arrival.EARLY and verdict.delay is None:
        return  # it was told what remains of an earlier promise
    by_rung = verdict.rung is not None
    if verdict.retry_after_seconds is not None and verdict.reason is not None:
        told_until = now + verdict.retry_after_seconds
        echoes.refused(request.fingerprint, verdict.reason, told_until, now, promised=not by_rung)
    if verdict.pool is not None and verdict.delay is not None and not by_rung:
        pools[verdict.pool].note_refused(verdict, now)


def _asked_tokens(request: Request, verdict: Verdict, pool: Pool, lanes: Mapping[Lane, LanePolicy]) -> int:
    """Return what a request would have reserved with its own ceiling, lowered by no rung."""
    if RungAction.CAP_OUTPUT not in verdict.degradations or verdict.lane is None:
        return reservation_of(verdict).total_tokens
    (option,) = options_on((pool.replicas[verdict.replica or ""],), request, lanes[verdict.lane])
    return option.reservation.total_tokens
