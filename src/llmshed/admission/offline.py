"""The verdict on a request before a replica in a stated condition, with no gateway running."""

from dataclasses import replace

from llmshed.admission.budget import Reservation
from llmshed.admission.decide import Surroundings, decide
from llmshed.admission.echo import Arrival, Echo
from llmshed.admission.ledger import Charge
from llmshed.admission.policy import AdmissionPolicy, ReplicaSpec
from llmshed.admission.request import Lane, Request
from llmshed.admission.service.pool import Pool
from llmshed.admission.service.replica import AwaitedReplica
from llmshed.admission.tenancy import TenantUse
from llmshed.admission.verdict import Verdict


def offline_verdict(
    request: Request,
    policy: AdmissionPolicy,
    spec: ReplicaSpec,
    *,
    active_tokens: int = 0,
    active_sequences: int = 0,
    queued_tokens: int = 0,
) -> Verdict:
    """Return the verdict by the same rules as the daemon's, but without a release schedule.

    Nothing is known of when the stated tokens come free, so what does not fit is refused and no wait is promised. Nor
    is it known how many requests wait, so no queue is told.
    """
    pool = Pool(spec.pool)
    shared = any(known.shared for known in policy.pools if known.name == spec.pool)
    share_seconds = policy.lanes[Lane.INTERACTIVE].engine_share_seconds
    replica = AwaitedReplica(spec, shared=shared, engine_share_seconds=share_seconds, now=0.0)
    replica.queued_tokens = queued_tokens
    pool.replicas[spec.name] = replica
    running = Reservation(active_tokens, 0, 0, active_sequences)
    replica.ledger.charge(Charge(-1, request.tenant, Lane.BULK, running, 0, dispatched_at=0.0))
    around = Surroundings(policy, {pool.name: pool}, TenantUse(), draining=False, may_wait=False)
    verdict = decide(request, around, Echo(Arrival.FIRST), now=0.0)
    return replace(verdict, retry_after_seconds=None, queue=None)
