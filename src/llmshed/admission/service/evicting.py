"""The verdicts on requests that leave their queue unserved."""

from dataclasses import replace

from llmshed.admission.actions import Action, Enqueue, Evict, Refuse
from llmshed.admission.options import options_on
from llmshed.admission.queueing.waiting import Waiting
from llmshed.admission.reasons import Reason
from llmshed.admission.service.choice import refused
from llmshed.admission.service.foresight import Asker, foresee
from llmshed.admission.service.pool import Pool
from llmshed.admission.verdict import Verdict


def expired_verdict(waiting: Waiting, pool: Pool, now: float) -> Verdict:
    """Return the refusal of a request whose wait is over: by its lane's residence, or by its own deadline."""
    residence_ends = waiting.joined_at + waiting.lane_policy.max_residence_seconds
    if waiting.expires_at < residence_ends:
        detail = (
            f"it could no longer be answered by its own deadline after {now - waiting.joined_at:.1f} s in the queue"
        )
        return _leaving(waiting, Reason.DEADLINE_INFEASIBLE, detail, pool, now)
    detail = f"it waited for the {waiting.lane_policy.max_residence_seconds:g} s that its lane permits"
    return _leaving(waiting, Reason.QUEUE_TIMEOUT, detail, pool, now)


def displaced_verdict(out: Waiting, by: Waiting, pool: Pool, now: float) -> Verdict:
    """Return the refusal of a request whose place a newcomer took."""
    if by.priority_class.rank < out.priority_class.rank:
        detail = "the queue is full and work of a higher class came"
        return _leaving(out, Reason.SHED_PRIORITY, detail, pool, now)
    detail = "the queue is full and its tenant waited with more than its share of it"
    return _leaving(out, Reason.QUEUE_FULL, detail, pool, now)


def _leaving(waiting: Waiting, reason: Reason, detail: str, pool: Pool, now: float) -> Verdict:
    """Return a refusal that tells the wait of a newcomer like it, behind all who wait now."""
    replica = pool.replicas[waiting.replica]
    (option,) = options_on((replica,), waiting.request, waiting.lane_policy, waiting.cap)
    chosen = waiting.chosen
    asker = Asker(waiting.request, chosen.lane, chosen.priority_class, waiting.weight, waiting.lane_policy)
    foreseen = foresee(asker, option, replica, pool, now)
    verdict = replace(
        waiting.verdict,
        equation=replica.equation_before(foreseen.ahead.tokens),
        delay=foreseen.delay,
        window=replica.window.terms(now),
        queue=pool.queue_terms(chosen.lane, waiting.lane_policy),
    )
    promised = pool.learnt.promised_seconds(waiting.rank, now)
    return replace(refused(verdict, reason, promised), detail=detail)


def moved_actions(actions: list[Action], key: int) -> list[Action]:
    """Return what a request hears that waited before: nothing of another queue, and a refusal as an eviction."""
    told: list[Action] = []
    for action in actions:
        match action:
            case Enqueue(queued, _, _) if queued == key:
                continue
            case Refuse(refused, verdict) if refused == key:
                told.append(Evict(key, verdict))
            case _:
                told.append(action)
    return told
