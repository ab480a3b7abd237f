"""The decision on one request: which checks, in which order, and the term that binds.

First what the key allows, then the permanent limits, then the states in which nobody is served (draining, starting, no
replica), a deadline that has passed, the tenant's quota, a repeat that comes before its time, and last the choice
between replicas. All of it is read together and nothing is charged here, so a refused request has cost nobody anything.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from llmshed.admission.echo import Arrival, Echo
from llmshed.admission.lanes import Classification, allowed_class, allowed_intent, lane_of
from llmshed.admission.options import Option, accepted_maximums, most_free, options_on, roomiest_maximums
from llmshed.admission.permanent import no_pool_refusal, permanent_refusal
from llmshed.admission.policy import AdmissionPolicy, LanePolicy, TenantPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, Request, service_rank
from llmshed.admission.service.bars import Bar, barred_verdict, offer_under_rungs
from llmshed.admission.service.choice import Place, choose
from llmshed.admission.service.foresight import Asker
from llmshed.admission.service.pool import Pool
from llmshed.admission.service.replica import AwaitedReplica
from llmshed.admission.tenancy import TenantUse, quota_refusal, seats_refusal
from llmshed.admission.verdict import AcceptedMaximums, Decision, Verdict

NO_REPLICA_RETRY_SECONDS = 5.0
"""Wait told while no replica is up: a little over two probe intervals of the gateway."""
DRAINING_RETRY_SECONDS = 1.0
"""Wait told while draining: another gateway, or this one restarted, takes the next try."""


class Surroundings(NamedTuple):
    """What a decision looks at beside the request; nothing in it is changed.

    Args:
        policy: the operator's numbers.
        pools: the pools by name; one of the policy that has no replica yet may be absent.
        tenant_use: what each tenant holds.
        draining: whether the gateway shuts down.
        may_wait: whether a schedule is known by which work could wait.
        degraded: whether a rung is in force on any pool.
    """

    policy: AdmissionPolicy
    pools: Mapping[str, Pool]
    tenant_use: TenantUse
    draining: bool
    may_wait: bool = True
    degraded: bool = False

    @property
    def replicas(self) -> list[AwaitedReplica]:
        """Return the replicas of all pools."""
        return [replica for pool in self.pools.values() for replica in pool]


def decide(request: Request, around: Surroundings, echo: Echo, now: float, without: str | None = None) -> Verdict:
    """Return the verdict on a request.

    Args:
        request: the request.
        around: what the decision looks at.
        echo: what is known of an earlier try of it.
        now: clock reading, in seconds.
        without: a replica that just turned out to be lost.
    """
    tenant = around.policy.tenants.get(request.tenant)
    if tenant is None:
        return unknown_tenant_verdict()
    intent = allowed_intent(tenant, request.asked_intent)
    if intent is None:
        allowed = ", ".join(sorted(tenant.intents))
        return Verdict(Decision.REFUSE, Reason.FORBIDDEN, detail=f"this key allows intent {allowed}")
    lane = lane_of(request, intent, around.policy.lanes)
    chosen = Classification(intent, allowed_class(tenant, request.asked_class), lane)
    verdict = _decide_in_lane(request, chosen, tenant, around, echo, now, without)
    if verdict.arrival is not None:
        return verdict
    return replace(  # a refusal that knows nothing of the request itself names no class of its own
        verdict,
        lane=chosen.lane,
        intent=chosen.intent,
        priority_class=chosen.priority_class,
        arrival=echo.arrival,
        degradations=verdict.degradations or request.degradations,
    )


def unread_refusal(tenant: str, around: Surroundings, now: float) -> Verdict | None:
    """Return the refusal that needs no body to be read (draining, no replica at all, quota), or None."""
    if around.draining:
        return draining_verdict()
    replicas = around.replicas
    if not any(replica.up for replica in replicas):
        return unserved_verdict(known=bool(replicas))
    known = around.policy.tenants.get(tenant)
    if known is None:
        return unknown_tenant_verdict()
    return seats_refusal(known, around.tenant_use, replicas, now)


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
    echo: Echo,
    now: float,
    without: str | None,
) -> Verdict:
    wanted = Lane.BULK if chosen.lane is Lane.OVERFLOW else chosen.lane
    lane_policy = around.policy.lanes[wanted]
    if not around.policy.pools_of(request.model, wanted):
        refusal = no_pool_refusal(wanted, chosen, request.model)
        return replace(refusal, maximums=_maximums_of_other_lanes(request.model, around))
    known = _replicas_of(request.model, wanted, around)
    serving = [replica for replica in known if not replica.removed]
    everywhere = options_on(serving, request, lane_policy)
    permanent = permanent_refusal(request, chosen, lane_policy, everywhere) if everywhere else None
    if permanent is not None:
        return permanent
    options = []
    if not around.draining:
        up = [option for option in everywhere if option.replica.up and option.replica.spec.name != without]
        options = [o for o in up if o.possible(request) and o.takes_prompt(request, chosen.lane)]
    if not options:
        refusal = draining_verdict() if around.draining else unserved_verdict(known=bool(known))
        maximums = roomiest_maximums(lane_policy, (replica.spec.limits for replica in serving))
        return replace(refusal, maximums=maximums)
    return _among(options, request, chosen, lane_policy, tenant, around, echo, now)


def _replicas_of(model: str, lane: Lane, around: Surroundings) -> list[AwaitedReplica]:
    return [
        replica
        for pool in around.policy.pools_of(model, lane)
        if pool.name in around.pools
        for replica in around.pools[pool.name]
    ]


def _maximums_of_other_lanes(model: str, around: Surroundings) -> AcceptedMaximums | None:
    """Return what the model's pools do take, for a lane that none of them does; None when no pool has the model."""
    for lane in sorted(around.policy.lanes_of(model)):
        replicas = _replicas_of(model, lane, around)
        limits = (replica.spec.limits for replica in replicas if not replica.removed)
        return roomiest_maximums(around.policy.lanes[lane], limits)
    return None


def _among(
    options: list[Option],
    request: Request,
    chosen: Classification,
    lane_policy: LanePolicy,
    tenant: TenantPolicy,
    around: Surroundings,
    echo: Echo,
    now: float,
) -> Verdict:
    """Decide between replicas that could hold the request if they were empty; `options` is not empty."""
    bars: Mapping[str, Bar] = {}
    if around.degraded:
        options, bars = offer_under_rungs(options, request, chosen, lane_policy, around.pools)
    if _is_late(request, now):
        detail = "the request's own deadline has passed"
        return most_free(options).verdict(
            Decision.REFUSE, chosen, lane_policy, reason=Reason.DEADLINE_INFEASIBLE, detail=detail
        )
    if tenant.has_quota:
        best = most_free(options)
        quota = quota_refusal(tenant, around.tenant_use, best.reservation, around.replicas, now)
        if quota is not None:
            return replace(quota, maximums=accepted_maximums(lane_policy, best.replica.spec.limits))
    places = [_place(option, around) for option in options]
    early = echo.arrival is Arrival.EARLY
    if not early or not _somebody_waits(places, service_rank(chosen.lane, chosen.priority_class), now):
        repeat = echo.arrival is not Arrival.FIRST
        asker = Asker(request, chosen.lane, chosen.priority_class, tenant.weight, lane_policy, repeat)
        verdict = choose(places, asker, chosen, now, echo.arrival, may_wait=around.may_wait)
        if bars:
            return barred_verdict(verdict, bars, now)
        if not early or verdict.decision is not Decision.REFUSE:
            return verdict
    return most_free(options).verdict(
        Decision.REFUSE,
        chosen,
        lane_policy,
        reason=echo.reason,
        retry_after_seconds=echo.remaining_seconds,
        detail=f"it was refused before and told to wait, of which {echo.remaining_seconds:.1f} s are left",
    )


def _is_late(request: Request, now: float) -> bool:
    deadline, first_token_deadline = request.deadline, request.first_token_deadline
    return (deadline is not None and deadline <= now) or (
        first_token_deadline is not None and first_token_deadline <= now
    )


def _place(option: Option, around: Surroundings) -> Place:
    pool = around.pools[option.replica.spec.pool]
    return Place(option, pool.replicas[option.replica.spec.name], pool)


def _somebody_waits(places: list[Place], rank: int, now: float) -> bool:
    """Say whether room that comes free is meant for others: who waits, and who was told to come back."""
    return any(place.pool.waiting or place.pool.learnt.promised_seconds(rank, now) > 0 for place in places)
