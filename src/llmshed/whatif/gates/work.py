"""A request as every policy sees it: classified, with what it would hold on each replica; or refused for good."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from llmshed.admission.budget import Reservation
from llmshed.admission.decide import unknown_tenant_verdict
from llmshed.admission.lanes import Classification, allowed_class, allowed_intent, lane_of, output_ceiling
from llmshed.admission.options import Option, options_on
from llmshed.admission.permanent import no_pool_refusal, permanent_refusal
from llmshed.admission.policy import AdmissionPolicy, LanePolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.replica import Replica
from llmshed.admission.request import Lane, Request
from llmshed.admission.verdict import Decision, Verdict


@dataclass(frozen=True, slots=True)
class Terms:
    """What a request would hold on one replica: output tokens of each sequence, and all of it together."""

    ceiling_tokens: int
    reservation: Reservation
    within_context: bool


@dataclass(frozen=True, slots=True)
class Work:
    """A request that could be served.

    Args:
        request: the request.
        chosen: its intent, class and lane under the policy that it came under.
        lane_policy: the thresholds of that lane.
        pools: names of the pools that take it.
        order: place in the order of arrival; grows by one with each request.
    """

    request: Request
    chosen: Classification
    lane_policy: LanePolicy
    pools: frozenset[str]
    order: int
    _terms: dict[str, Terms] = field(default_factory=dict, compare=False, repr=False)

    @property
    def key(self) -> int:
        """Return the request's key."""
        return self.request.key

    def terms(self, replica: Replica) -> Terms:
        """Return what the request would hold on a replica; remembered while the request lives."""
        name = replica.spec.name
        known = self._terms.get(name)
        if known is None:
            ceiling = output_ceiling(self.request, self.lane_policy, replica.spec.limits)
            option = Option(replica, ceiling, replica.reservation(self.request, ceiling))
            known = self._terms[name] = Terms(ceiling, option.reservation, option.within_context(self.request))
        return known

    def verdict(self, decision: Decision, replica: Replica) -> Verdict:
        """Return a verdict with every number of this request on a replica, before it is charged there."""
        terms = self.terms(replica)
        option = Option(replica, terms.ceiling_tokens, terms.reservation)
        return option.verdict(decision, self.chosen, self.lane_policy)

    def candidates(self, replicas: Iterable[Replica]) -> list[Replica]:
        """Return the replicas that are up, in a pool that takes the request, and can hold its context."""
        return [
            replica
            for replica in replicas
            if replica.up and replica.spec.pool in self.pools and self.terms(replica).within_context
        ]


def work_of(request: Request, policy: AdmissionPolicy, replicas: Collection[Replica], order: int) -> Work | Verdict:
    """Return the request as work, or the verdict that refuses what no policy could serve."""
    tenant = policy.tenants.get(request.tenant)
    if tenant is None:
        return unknown_tenant_verdict()
    intent = allowed_intent(tenant, request.asked_intent)
    if intent is None:
        allowed = ", ".join(sorted(tenant.intents))
        return Verdict(Decision.REFUSE, Reason.FORBIDDEN, detail=f"this key allows intent {allowed}")
    lane = lane_of(request, intent, policy.lanes)
    chosen = Classification(intent, allowed_class(tenant, request.asked_class), lane)
    wanted = Lane.BULK if chosen.lane is Lane.OVERFLOW else chosen.lane
    pools = frozenset(pool.name for pool in policy.pools if wanted in pool.lanes and pool.serves(request.model))
    if not pools:
        return no_pool_refusal(wanted, chosen, request.model)
    lane_policy = policy.lanes[wanted]
    options = options_on((r for r in replicas if r.spec.pool in pools and not r.removed), request, lane_policy)
    if options and not any(option.within_context(request) for option in options):
        refusal = permanent_refusal(request, chosen, lane_policy, options)
        if refusal is not None:  # always so: nothing is possible where no context is long enough
            return refusal
    return Work(request, chosen, lane_policy, pools, order)


def refused(work: Work, reason: Reason, detail: str, retry_after_seconds: float | None) -> Verdict:
    """Return a refusal of work that no replica was asked for."""
    return Verdict(
        Decision.REFUSE,
        reason,
        lane=work.chosen.lane,
        intent=work.chosen.intent,
        priority_class=work.chosen.priority_class,
        retry_after_seconds=retry_after_seconds,
        detail=detail,
    )
