"""The refusals that no waiting would change: 413, never a Retry-After.

A caller who can never succeed must not be told to come back, so these are checked before anything that passes. They are
judged on the replicas as configured, up or down, derated or not: a limit that would lift with the next probe is none.
"""

from dataclasses import replace

from llmshed.admission.explain import reservation_sentence
from llmshed.admission.options import Option, options_on, output_bound
from llmshed.admission.policy import LanePolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.replica import Replica
from llmshed.admission.request import Lane, Request
from llmshed.admission.verdict import Advice, Decision, Verdict

_SMALLER = (Advice.SUMMARISE, Advice.SPLIT)


def permanent_refusal(request: Request, lane: Lane, lane_policy: LanePolicy, serving: list[Replica]) -> Verdict | None:
    """Return why the request can never be served by these replicas, or None; `serving` is not empty."""
    options = options_on(serving, request, lane_policy)
    roomiest = max(options, key=lambda option: option.replica.spec.limits.max_total_tokens)
    about = roomiest.verdict(Decision.REFUSE, lane_policy)
    if lane is Lane.OVERFLOW:
        return replace(
            about,
            reason=Reason.LANE_LIMIT,
            detail=f"{request.longest_prompt_tokens:,} input tokens exceed the bulk lane's"
            f" {lane_policy.max_input_tokens:,}",
            advice=(*_SMALLER, Advice.DEDICATED_POOL),
        )
    asked = request.asked_output_tokens
    bound = output_bound(lane_policy, roomiest.replica.spec.limits)
    if asked is not None and bound is not None and asked > bound:
        detail = f"{asked:,} output tokens exceed the accepted {bound:,}"
        return replace(about, reason=Reason.OUTPUT_LIMIT, detail=detail, advice=(Advice.LOWER_OUTPUT,))
    within = [option for option in options if option.within_context(request)]
    if not within:
        advice = _SMALLER if asked is None else (*_SMALLER, Advice.LOWER_OUTPUT)
        detail = _context_sentence(request, roomiest)
        return replace(about, reason=Reason.CONTEXT_LIMIT, detail=detail, advice=advice)
    if not any(option.possible(request) for option in within):
        return replace(
            about,
            reason=Reason.LANE_LIMIT,
            detail=_beyond_sentence(roomiest),
            advice=(*_SMALLER, Advice.LOWER_OUTPUT, Advice.DEDICATED_POOL),
        )
    return None


def no_pool_refusal(lane: Lane, model: str) -> Verdict:
    """Return the refusal of a lane that no pool of the model serves."""
    return Verdict(
        Decision.REFUSE,
        Reason.LANE_LIMIT,
        detail=f"no pool here takes {lane} work for model {model}",
        advice=(*_SMALLER, Advice.DEDICATED_POOL),
    )


def _context_sentence(request: Request, option: Option) -> str:
    limits = option.replica.spec.limits
    longest = request.longest_prompt_tokens
    if longest > limits.max_input_tokens:
        return f"{longest:,} input tokens exceed the model's {limits.max_input_tokens:,}"
    output_tokens = max(option.ceiling_tokens, 1)
    return f"{longest:,} input + {output_tokens:,} output tokens exceed the model's {limits.max_total_tokens:,}"


def _beyond_sentence(option: Option) -> str:
    budget = option.replica.spec.budget
    return (
        f"{reservation_sentence(option.reservation)} exceed what a replica here may ever take:"
        f" {budget.safe_budget_tokens:,} tokens, {budget.hard_cap_sequences:,} sequences"
    )
