"""The refusals that no waiting would change: 413, never a Retry-After.

A caller who can never succeed must not be told to come back, so these are checked before anything that passes. They are
judged on the replicas as configured, up or down, derated or not: a limit that would lift with the next probe is none.
"""

from dataclasses import replace

from llmshed.admission.explain import reservation_sentence
from llmshed.admission.lanes import Classification
from llmshed.admission.options import Option, output_bound
from llmshed.admission.policy import LanePolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, Request
from llmshed.admission.verdict import Advice, Decision, Verdict

_SMALLER = (Advice.SUMMARISE, Advice.SPLIT)


def permanent_refusal(
    request: Request, chosen: Classification, lane_policy: LanePolicy, options: list[Option]
) -> Verdict | None:
    """Return why the request can never be served by these replicas, or None; `options` is not empty."""
    if chosen.lane is not Lane.OVERFLOW:
        allowed = []
        for option in options:
            if _allowed(option, request, lane_policy):
                if option.takes_prompt(request, chosen.lane):
                    return None
                allowed.append(option)
        if allowed:
            return _too_long_to_share(request, chosen, lane_policy, allowed)
    roomiest = max(options, key=lambda option: option.replica.spec.limits.max_total_tokens)
    about = roomiest.verdict(Decision.REFUSE, chosen, lane_policy)
    asked = request.asked_output_tokens
    if chosen.lane is Lane.OVERFLOW:
        return replace(
            about,
            reason=Reason.LANE_LIMIT,
            detail=f"{request.longest_prompt_tokens:,} input tokens exceed the bulk lane's"
            f" {lane_policy.max_input_tokens:,}",
            advice=(*_SMALLER, Advice.DEDICATED_POOL),
        )
    bound = output_bound(lane_policy, roomiest.replica.spec.limits)
    if asked is not None and bound is not None and asked > bound:
        detail = f"{asked:,} output tokens exceed the accepted {bound:,}"
        return replace(about, reason=Reason.OUTPUT_LIMIT, detail=detail, advice=(Advice.LOWER_OUTPUT,))
    if not any(option.within_context(request) for option in options):
        advice = _SMALLER if asked is None else (*_SMALLER, Advice.LOWER_OUTPUT)
        detail = _context_sentence(request, roomiest)
        return replace(about, reason=Reason.CONTEXT_LIMIT, detail=detail, advice=advice)
    return replace(
        about,
        reason=Reason.LANE_LIMIT,
        detail=_beyond_sentence(roomiest),
        advice=(*_SMALLER, Advice.LOWER_OUTPUT, Advice.DEDICATED_POOL),
    )


def no_pool_refusal(lane: Lane, chosen: Classification, model: str) -> Verdict:
    """Return the refusal of a lane that no pool of the model serves."""
    return Verdict(
        Decision.REFUSE,
        Reason.LANE_LIMIT,
        lane=chosen.lane,
        intent=chosen.intent,
        priority_class=chosen.priority_class,
        detail=f"no pool here takes {lane} work for model {model}",
        advice=(*_SMALLER, Advice.DEDICATED_POOL),
    )


def _allowed(option: Option, request: Request, lane_policy: LanePolicy) -> bool:
    bound = output_bound(lane_policy, option.replica.spec.limits)
    within = bound is None or request.asked_output_tokens is None or request.asked_output_tokens <= bound
    return within and option.possible(request)


def _too_long_to_share(
    request: Request, chosen: Classification, lane_policy: LanePolicy, options: list[Option]
) -> Verdict:
    """Return the refusal of a prompt behind which no interactive one could keep its objective; a bulk pool takes it."""
    most = max(option.replica.spec.max_shared_prompt_tokens or 0 for option in options)
    return replace(
        options[0].verdict(Decision.REFUSE, chosen, lane_policy),
        reason=Reason.LANE_LIMIT,
        detail=f"{request.longest_prompt_tokens:,} input tokens exceed the {most:,} that replicas shared with"
        " interactive work take at once",
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
