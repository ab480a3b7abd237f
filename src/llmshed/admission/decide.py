"""The decision on one request: which checks, in which order, and the term that binds.

First what the key allows, then the permanent limits, then the states in which nobody is served (draining, starting, no
replica), the request's own deadline, its tenant's quota, and last the equation. All of it is read together and nothing
is charged here, so a refused request has cost nobody anything.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from llmshed.admission.explain import fit_sentence
from llmshed.admission.lanes import Classification, allowed_class, allowed_intent, lane_of
from llmshed.admission.options import Option, accepted_maximums, most_free, options_on, roomiest_maximums
from llmshed.admission.permanent import no_pool_refusal, permanent_refusal
from llmshed.admission.policy import AdmissionPolicy, LanePolicy, TenantPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.replica import Replica
from llmshed.admission.request import Lane, Request
from llmshed.admission.tenancy import TenantUse, quota_refusal
from llmshed.admission.verdict import AcceptedMaximums, Decision, Verdict

NO_REPLICA_RETRY_SECONDS = 5.0
"""Wait told while no replica is up: a little over two probe intervals of the gateway."""
DRAINING_RETRY_SECONDS = 1.0
"""Wait told while draining: another gateway, or this one restarted, takes the next try."""
UNKNOWN_RETRY_SECONDS = 60.0
"""Wait told when no release can be foreseen, as under a derated budget that is smaller than the request."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a decision looks at beside the request; nothing in it is changed."""

    policy: AdmissionPolicy
    replicas: Collection[Replica]
    tenant_use: TenantUse
    draining: bool


def decide(request: Request, around: Surroundings, now: float, without: str | None = None) -> Verdict:
    """Return the verdict on a request; `without` names a replica that just turned out to be lost."""
    tenant = around.policy.tenants.get(request.tenant)
    if tenant is None:
        return unknown_tenant_verdict()
    intent = allowed_intent(tenant, request.asked_intent)
    if intent is None:
        allowed = ", ".join(sorted(tenant.intents))
        return Verdict(Decision.REFUSE, Reason.FORBIDDEN, detail=f"this key allows intent {allowed}")
    lane = lane_of(request, intent, around.policy.lanes)
    chosen = Classification(intent, allowed_class(tenant, request.asked_class), lane)
    verdict = _decide_in_lane(request, chosen, tenant, around, now, without)
    if verdict.lane is None:  # a refusal that knows nothing of the request itself
        verdict = replace(verdict, lane=chosen.lane, intent=chosen.intent, priority_class=chosen.priority_class)
    return verdict


def unknown_tenant_verdict() -> Verdict:
    """Return the refusal of a tenant that a reload took away between its key's check and the decision."""
    return Verdict(Decision.REFUSE, Reason.UNAUTHENTICATED, detail="this key is no longer known")


def draining_verdict() -> Verdict:
    """Return the refusal of a gateway that shuts down."""
    detail = "this gateway is shutting down"
    return Verdict(Decision.REFUSE, Reason.DRAINING, retry_after_seconds=DRAINING_RETRY_SECONDS, detail=detail)


def unserved_verdict(*, known: bool) -> Verdict:
    """Return the refusal while no replica serves; `known` says whether one ever came up."""
    reason = Reason.NO_REPLICA if known else Reason.STARTING
    detail = "no replica that could serve this is up" if known else "no replica has come up yet"
    return Verdict(Decision.REFUSE, reason, retry_after_seconds=NO_REPLICA_RETRY_SECONDS, detail=detail)


def lost_again_verdict(admitted: Verdict) -> Verdict:
    """Return the refusal of a request whose second replica was lost too; the terms that admitted it there stay told."""
    return replace(
        admitted,
        decision=Decision.REFUSE,
        reason=Reason.NO_REPLICA,
        retry_after_seconds=NO_REPLICA_RETRY_SECONDS,
        detail="two replicas were lost before they read the request",
    )


def _decide_in_lane(
    request: Request,
    chosen: Classification,
    tenant: TenantPolicy,
    around: Surroundings,
    now: float,
    without: str | None,
) -> Verdict:
    wanted = Lane.BULK if chosen.lane is Lane.OVERFLOW else chosen.lane
    lane_policy = around.policy.lanes[wanted]
    if wanted not in around.policy.lanes_of(request.model):
        refusal = no_pool_refusal(wanted, chosen, request.model)
        return replace(refusal, maximums=_maximums_of_other_lanes(request.model, around))
    serving = _replicas_of(request.model, wanted, around)
    everywhere = options_on(serving, request, lane_policy)
    permanent = permanent_refusal(request, chosen, lane_policy, everywhere) if everywhere else None
    if permanent is not None:
        return permanent
    maximums = roomiest_maximums(lane_policy, (replica.spec.limits for replica in serving))
    if around.draining:
        return replace(draining_verdict(), maximums=maximums)
    options = [o for o in everywhere if o.replica.up and o.replica.spec.name != without and o.possible(request)]
    if not options:
        return replace(unserved_verdict(known=bool(serving)), maximums=maximums)
    return _among(options, request, chosen, lane_policy, tenant, around, now)


def _replicas_of(model: str, lane: Lane, around: Surroundings) -> list[Replica]:
    pools = {pool.name for pool in around.policy.pools if lane in pool.lanes and pool.serves(model)}
    return [replica for replica in around.replicas if replica.spec.pool in pools and not replica.removed]


def _maximums_of_other_lanes(model: str, around: Surroundings) -> AcceptedMaximums | None:
    """Return what the model's pools do take, for a lane that none of them does; None when no pool has the model."""
    for lane in sorted(around.policy.lanes_of(model)):
        replicas = _replicas_of(model, lane, around)
        return roomiest_maximums(around.policy.lanes[lane], (replica.spec.limits for replica in replicas))
    return None


def _among(
    options: list[Option],
    request: Request,
    chosen: Classification,
    lane_policy: LanePolicy,
    tenant: TenantPolicy,
    around: Surroundings,
    now: float,
) -> Verdict:
    """Decide between replicas that could hold the request if they were empty; `options` is not empty."""
    best = most_free(options)
    if request.deadline is not None and request.deadline <= now:
        return replace(
            best.verdict(Decision.REFUSE, chosen, lane_policy),
            reason=Reason.DEADLINE_INFEASIBLE,
            detail="the request's own deadline has passed",
        )
    quota = quota_refusal(tenant, around.tenant_use, best.reservation, around.replicas, now)
    if quota is not None:
        return replace(quota, maximums=accepted_maximums(lane_policy, best.replica.spec.limits))
    return _by_equation(options, best, chosen, lane_policy, now)


def _by_equation(
    options: list[Option], best: Option, chosen: Classification, lane_policy: LanePolicy, now: float
) -> Verdict:
    """Admit where it fits, or refuse with the term that binds: seats if they lack everywhere, else tokens.

    The wait that is told is the shortest of all replicas.
    """
    fitting = [option for option in options if option.fits()]
    if fitting:
        return most_free(fitting).verdict(Decision.ADMIT, chosen, lane_policy)
    waits = [wait for o in options if (wait := o.replica.wait_seconds(o.reservation, now)) is not None]
    seats_bind = all(option.reservation.sequences > option.equation.free_sequences for option in options)
    return replace(
        best.verdict(Decision.REFUSE, chosen, lane_policy),
        reason=Reason.CONCURRENCY_LIMIT if seats_bind else Reason.TOKEN_BUDGET_EXHAUSTED,
        retry_after_seconds=min(waits, default=UNKNOWN_RETRY_SECONDS),
        detail=fit_sentence(best.equation, best.reservation),
    )
