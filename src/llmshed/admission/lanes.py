"""Classify a request by declared intent and counted size, and write its output ceiling.

Interactive is what was declared interactive and is small: longest prompt <= the lane's input bound and ceiling <= its
output bound. Everything else is bulk. What exceeds bulk's own bounds is overflow and never enters a GPU queue. A client
may only ask for less than its key allows, so no header or field of its own ever raises lane or class.
"""

from collections.abc import Mapping
from typing import NamedTuple

from llmshed.admission.policy import LanePolicy, ModelLimits, TenantPolicy
from llmshed.admission.request import Intent, Lane, PriorityClass, Request


class Classification(NamedTuple):
    """Where a request belongs before any replica is asked."""

    intent: Intent
    priority_class: PriorityClass
    lane: Lane


def allowed_intent(tenant: TenantPolicy, asked: Intent | None) -> Intent | None:
    """Return the intent in force; None when the client asks for more than its key allows.

    Bulk is less than interactive, so it may always be asked for.
    """
    if asked is None:
        return tenant.default_intent if tenant.default_intent in tenant.intents else Intent.BULK
    if asked is Intent.BULK or asked in tenant.intents:
        return asked
    return None


def allowed_class(tenant: TenantPolicy, asked: PriorityClass | None) -> PriorityClass:
    """Return the class in force: the tenant's own, or a lower one that the client asked for."""
    if asked is None or asked.rank < tenant.top_class.rank:
        return tenant.top_class
    return asked


def lane_of(request: Request, intent: Intent, lanes: Mapping[Lane, LanePolicy]) -> Lane:
    """Return the lane of a request by intent and size; an absent ceiling takes no part in the choice."""
    interactive, bulk = lanes[Lane.INTERACTIVE], lanes[Lane.BULK]
    if intent is Intent.INTERACTIVE and _within(request, interactive):
        return Lane.INTERACTIVE
    if bulk.max_input_tokens is not None and request.longest_prompt_tokens > bulk.max_input_tokens:
        return Lane.OVERFLOW
    return Lane.BULK


def output_ceiling(request: Request, lane: LanePolicy, limits: ModelLimits) -> int:
    """Return the ceiling of each sequence: the one asked for, else the least of default, lane bound and context left.

    The result may be below 1 when the prompt alone fills the context; such a request is refused as `context_limit`.
    """
    if request.asked_output_tokens is not None:
        return request.asked_output_tokens
    left = limits.max_total_tokens - request.longest_prompt_tokens
    bounds = (lane.default_output_tokens, lane.max_output_tokens, limits.max_output_tokens, left)
    return min([bound for bound in bounds if bound is not None])


def _within(request: Request, lane: LanePolicy) -> bool:
    input_fits = lane.max_input_tokens is None or request.longest_prompt_tokens <= lane.max_input_tokens
    asked = request.asked_output_tokens
    return input_fits and (asked is None or lane.max_output_tokens is None or asked <= lane.max_output_tokens)
