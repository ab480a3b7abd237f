"""Where a request counts, whatever gate it meets: lane, class and ceiling by the operator's own rules.

Gates classify for themselves, and some not at all. Figures are only comparable if every gate's requests are counted in
the same places, so the world classifies each once, by the rules of admission.
"""

from dataclasses import dataclass

from llmshed.admission.lanes import allowed_class, allowed_intent, lane_of, output_ceiling
from llmshed.admission.policy import AdmissionPolicy, ModelLimits
from llmshed.admission.request import Intent, Lane, PriorityClass, Request


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a request counts; `ceiling_tokens` may be below 1 where the prompt fills the context by itself."""

    lane: Lane
    priority_class: PriorityClass
    ceiling_tokens: int


def standing_of(request: Request, policy: AdmissionPolicy, limits: ModelLimits) -> Standing:
    """Return where a request counts; an intent that its key does not allow counts as bulk.

    Args:
        request: a request of a tenant of the policy.
        policy: the operator's numbers.
        limits: what a replica can hold, which bounds a ceiling that was not asked for.
    """
    tenant = policy.tenants[request.tenant]
    intent = allowed_intent(tenant, request.asked_intent) or Intent.BULK
    lane = lane_of(request, intent, policy.lanes)
    lane_policy = policy.lanes[Lane.BULK if lane is Lane.OVERFLOW else lane]
    return Standing(lane, allowed_class(tenant, request.asked_class), output_ceiling(request, lane_policy, limits))
