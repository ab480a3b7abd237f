"""The text of a refusal. Several clients show their user nothing else, so it alone must tell what to do."""

from typing import assert_never

from llmshed.admission.reasons import ErrorKind, Reason, Retry
from llmshed.admission.retry_after import RetryAdvice
from llmshed.admission.verdict import Advice
from llmshed.gateway.contract.problem import Problem
from llmshed.observability.text import one_line


def message_text(problem: Problem, lane: str, request_id: str, advice: RetryAdvice) -> str:
    """Return one line: opening, sentence, retry time, deadline, advice, limits and the bracketed tail for searches."""
    sentence = one_line(problem.message).strip().rstrip(".")
    parts = [f"{_opening(problem)}{sentence}{_overflow(problem)}{_retry(problem, advice)}."]
    if deadlines := _deadlines(problem):
        parts.append(f"Asked for: {deadlines}.")
    if problem.advice:
        parts.append(f"{_joined([_advice_clause(word) for word in problem.advice]).capitalize()}.")
    if problem.maximums is not None or problem.timeout is not None:
        parts.append(f"Limits: {_limits(problem)}.")
    parts.append(f"[llmshed reason={problem.reason} lane={lane} request_id={request_id}]")
    return " ".join(parts)


def _opening(problem: Problem) -> str:
    """Return TGI's own words for a busy model, which clients of TGI look for."""
    if problem.reason.row.kind is ErrorKind.RATE and problem.reason is not Reason.TENANT_QUOTA:
        return "Model is overloaded: "
    return ""


def _overflow(problem: Problem) -> str:
    """Return the phrases by which litellm and LangChain know that a prompt is too long for the model.

    litellm looks for "Input tokens exceed the configured limit" or TGI's "`inputs` tokens + `max_new_tokens` must be
    <=", LangChain for "exceeds the context window".
    """
    if problem.reason not in {Reason.CONTEXT_LIMIT, Reason.LANE_LIMIT}:
        return ""
    figures = _overflow_figures(problem)
    if not figures:
        if problem.reason is Reason.LANE_LIMIT:  # it may be for its copies or its lane, not for its length
            return ""
        figures = "Input tokens exceed the configured limit"
    return f". {figures}; the request exceeds the context window of this endpoint"


def _overflow_figures(problem: Problem) -> str:
    """Return which accepted maximum is exceeded by how much; empty when the known numbers exceed none."""
    maximums = problem.maximums
    given = problem.input_tokens if problem.longest_prompt_tokens is None else problem.longest_prompt_tokens
    if given is None or maximums is None:
        return ""
    if maximums.max_input_tokens is not None and given > maximums.max_input_tokens:
        return f"Input tokens exceed the configured limit: {given} > max_input_tokens={maximums.max_input_tokens}"
    asked = problem.requested_output_tokens or 0
    if maximums.max_total_tokens is not None and given + asked > maximums.max_total_tokens:
        return (
            f"`inputs` tokens + `max_new_tokens` must be <= {maximums.max_total_tokens}."
            f" Given: {given} `inputs` tokens and {asked} `max_new_tokens`"
        )
    return ""


def _retry(problem: Problem, advice: RetryAdvice) -> str:
    if advice.wait_seconds is not None:
        return f"; retry in {advice.wait_seconds} s"
    match problem.reason.row.retry:
        case Retry.NEVER:
            return "; the same request would be refused again"
        case Retry.UNSAFE:
            return "; tokens may have been generated already, so a retry may pay twice"
        case Retry.LATER:
            return ""
        case _ as unreachable:
            assert_never(unreachable)


def _deadlines(problem: Problem) -> str:
    """Return which deadlines cannot be kept; they count from the arrival of the request."""
    named = {"the whole answer": problem.deadline_seconds, "its beginning": problem.first_token_seconds}
    return " and ".join(f"{what} within {seconds:.6g} s" for what, seconds in named.items() if seconds is not None)


def _advice_clause(advice: Advice) -> str:
    match advice:
        case Advice.SUMMARISE:
            return "summarise the input"
        case Advice.SPLIT:
            return "split it into several requests"
        case Advice.LOWER_OUTPUT:
            return "ask for fewer output tokens"
        case Advice.DEDICATED_POOL:
            return "use a dedicated pool"
        case _ as unreachable:
            assert_never(unreachable)


def _joined(clauses: list[str]) -> str:
    return clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])} or {clauses[-1]}"


def _limits(problem: Problem) -> str:
    """Return the accepted maximums, and the time that passed."""
    told: list[str] = []
    if (maximums := problem.maximums) is not None:
        named = {
            "max_input_tokens": maximums.max_input_tokens,
            "max_output_tokens": maximums.max_output_tokens,
            "max_total_tokens": maximums.max_total_tokens,
        }
        told = [f"{name}={tokens}" for name, tokens in named.items() if tokens is not None]
    if problem.timeout is not None:
        told.append(f"{problem.timeout.which}_seconds={problem.timeout.seconds:.6g}")
    return " ".join(told) or "none"
