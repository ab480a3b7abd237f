"""From a verdict that queues to the place in the queue, and from there to the dispatch."""

from collections.abc import Iterator

from llmshed.admission.lanes import Classification
from llmshed.admission.options import Option, options_on
from llmshed.admission.policy import AdmissionPolicy
from llmshed.admission.queueing.waiting import Waiting
from llmshed.admission.request import Request
from llmshed.admission.service.charging import reservation_of
from llmshed.admission.service.choice import overfull
from llmshed.admission.service.foresight import Asker, spare_seconds
from llmshed.admission.service.pool import Pool
from llmshed.admission.service.replica import AwaitedReplica
from llmshed.admission.verdict import Decision, Verdict


def waiting_of(
    request: Request, policy: AdmissionPolicy, verdict: Verdict, pool: Pool, since: float, now: float
) -> Waiting:
    """Return the waiting request of a verdict that queues; it ends with the residence or its last useful start.

    `since` is when it began to wait, which is before now if it comes from another queue: it has one residence in all.
    """
    if verdict.lane is None or verdict.intent is None or verdict.priority_class is None or verdict.replica is None:
        raise ValueError("a queueing verdict names lane, intent, class and replica")
    lane_policy = policy.lanes[verdict.lane]
    weight = policy.tenants[request.tenant].weight
    reservation = reservation_of(verdict)
    asker = Asker(request, verdict.lane, verdict.priority_class, weight, lane_policy)
    expires_at = since + lane_policy.max_residence_seconds
    if asker.hurries:
        replica = pool.replicas[verdict.replica]
        option = Option(replica, verdict.output_ceiling_tokens or 0, reservation)
        expires_at = min(expires_at, now + spare_seconds(asker, option, replica, pool, now))
    return Waiting(
        request=request,
        chosen=Classification(verdict.intent, verdict.priority_class, verdict.lane),
        policy=policy,
        lane_policy=lane_policy,
        verdict=verdict,
        reservation=reservation,
        replica=verdict.replica,
        joined_at=since,
        expires_at=expires_at,
        weight=weight,
    )


def make_room(waiting: Waiting, pool: Pool, now: float) -> Iterator[Waiting]:
    """Take out, one after the other, those in whose place a newcomer is let into a full queue.

    Their tokens are not many more than its own: a queue that is beyond its bound, since that was lowered after they
    came, is not emptied to it at the expense of those who wait.
    """
    queue, lane_policy = pool.queues[waiting.chosen.lane], waiting.lane_policy
    freed_tokens = 0
    while freed_tokens < waiting.total_tokens and overfull(
        pool, waiting.chosen.lane, lane_policy, waiting.total_tokens
    ):
        out = queue.displaceable_by(waiting.priority_class, waiting.tenant, waiting.weight, waiting.total_tokens)
        if out is None:
            return
        freed_tokens += out.total_tokens
        yield pool.leave(out.key, now)


def admitted_verdict(waiting: Waiting, replica: AwaitedReplica, pool: Pool, now: float) -> Verdict:
    """Return the verdict that dispatches a request which waited: the terms as they are, the estimate as it was."""
    (option,) = options_on((replica,), waiting.request, waiting.lane_policy, waiting.cap)
    return option.verdict(
        Decision.ADMIT,
        waiting.chosen,
        waiting.lane_policy,
        replica.equation_before(replica.held_tokens(waiting.key)),
        delay=waiting.verdict.delay,
        window=replica.window.terms(now),
        queue=pool.queue_terms(waiting.chosen.lane, waiting.lane_policy),
        arrival=waiting.verdict.arrival,
    )
