"""The HTTP contract: how every refusal and failure is told, in both dialects (docs/contract.md).

A refusal must cost far less than the work that it turns away, so it is one dictionary and one serialisation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, assert_never

import orjson

from llmshed.admission.reasons import ErrorKind, Reason, Retry
from llmshed.admission.retry_after import RetryAdvice, RetryRule
from llmshed.engines.base import Dialect
from llmshed.gateway.contract.answer_headers import DEGRADED_HEADER, NO_LANE, NO_TIMINGS, Timings, common_headers
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.contract.wording import message_text
from llmshed.observability.text import header_text, one_line

PROBLEM_JSON = "application/problem+json"
DOCUMENTATION = "docs/contract.md#"
"""Where each reason is explained, by an anchor of its name."""

# Problem types of the RateLimit header draft (2025-09), section "Problem Types".
_QUOTA_EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded"
_REDUCED_CAPACITY = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole HTTP answer; `retry_after_seconds` is the wait that it tells, for log and metric."""

    status: int
    headers: dict[str, str]
    body: bytes
    retry_after_seconds: float | None = None


class ContractWriter:
    """Puts problems into HTTP."""

    def __init__(self, draw: Callable[[], float], jitter_ratio: float, max_retry_after_seconds: float) -> None:
        """Build from the arguments of `RetryRule`."""
        self._rule = RetryRule(draw, jitter_ratio, max_retry_after_seconds)

    def refusal(
        self,
        problem: Problem,
        dialect: Dialect,
        request_id: str,
        accept: str | None = None,
        timings: Timings = NO_TIMINGS,
    ) -> Answer:
        """Return the whole answer; problem+json only when `accept`, the request's Accept header, names it.

        Clients that did not ask for problem+json show its reader no message at all, so the dialect's body is the rule.
        """
        request_id = header_text(request_id, 128)
        status = problem.http_status
        advice = self._rule.advise(problem.reason, status, problem.retry_after_seconds)
        headers = _refusal_headers(problem, status, request_id, advice, timings)
        extras = _extras(problem, request_id, advice)
        message = message_text(problem, extras["lane"], request_id, advice)
        if accept is not None and _asks_for_problem_json(accept):
            headers["content-type"] = PROBLEM_JSON
            body = _problem_json(problem, status, message, extras)
        else:
            body = _dialect_body(problem, dialect, message, extras)
        wait = None if advice.wait_ms is None else advice.wait_ms / 1000
        return Answer(status, headers, orjson.dumps(body), wait)

    def error_event(self, problem: Problem, dialect: Dialect, request_id: str) -> bytes:
        """Return one event for a failure after the 200: an unnamed `data:` line, since clients drop a named one."""
        request_id = header_text(request_id, 128)
        advice = self._rule.advise(problem.reason, problem.http_status, problem.retry_after_seconds)
        extras = _extras(problem, request_id, advice)
        message = message_text(problem, extras["lane"], request_id, advice)
        return b"data: " + orjson.dumps(_dialect_body(problem, dialect, message, extras)) + b"\n\n"


def _refusal_headers(
    problem: Problem, status: int, request_id: str, advice: RetryAdvice, timings: Timings
) -> dict[str, str]:
    headers = common_headers(request_id, problem.lane, problem.model, timings)
    headers["content-type"] = "application/json"
    headers["cache-control"] = "no-store"
    headers["x-llmshed-reason"] = problem.reason.value
    if problem.input_tokens is not None:
        headers["x-llmshed-input-tokens"] = str(problem.input_tokens)
    if problem.degradations:
        headers[DEGRADED_HEADER] = ",".join(problem.degradations)
    if advice.should_not:
        headers["x-should-retry"] = "false"
    if advice.wait_ms is not None:
        headers["retry-after"] = str(advice.wait_seconds)
        headers["retry-after-ms"] = str(advice.wait_ms)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        headers |= _rate_headers(problem, advice)
    elif status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = 'Bearer realm="llmshed"'
    elif status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["allow"] = ", ".join(problem.allow)
    return headers


def _rate_headers(problem: Problem, advice: RetryAdvice) -> dict[str, str]:
    """Return what LLM tools and huggingface_hub read of a 429; without `w`, beside which they print a wrong rate.

    Nothing is said to remain: what remains is too small for this request, and the exact headroom is no tenant's
    business.
    """
    name = _policy_name(problem)
    headers = {
        "ratelimit": f'"{name}";r=0;t={advice.wait_seconds}',
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": f"{advice.wait_seconds}s",
    }
    if problem.budget_tokens is not None:
        headers["ratelimit-policy"] = f'"{name}";q={problem.budget_tokens};llmshed-qu="tokens"'
        headers["x-ratelimit-limit-tokens"] = str(problem.budget_tokens)
    return headers


def _policy_name(problem: Problem) -> str:
    return problem.lane or "gateway"


def _extras(problem: Problem, request_id: str, advice: RetryAdvice) -> dict[str, Any]:
    """Return the fields that both dialects add to the four of theirs; a field without a value is left out."""
    extras: dict[str, Any] = {
        "reason": problem.reason,
        "lane": problem.lane or NO_LANE,
        "request_id": request_id,
    }
    if advice.wait_ms is not None:
        extras["retry_after_ms"] = advice.wait_ms
    if problem.maximums is not None:
        extras["limits"] = {
            "max_input_tokens": problem.maximums.max_input_tokens,
            "max_output_tokens": problem.maximums.max_output_tokens,
            "max_total_tokens": problem.maximums.max_total_tokens,
        }
    if problem.timeout is not None:
        extras["timeout"] = {"which": problem.timeout.which, "seconds": problem.timeout.seconds}
    if problem.input_tokens is not None:
        extras["usage"] = {
            "input_tokens": problem.input_tokens,
            "requested_output_tokens": problem.requested_output_tokens,
        }
    if problem.advice:
        extras["advice"] = problem.advice
    extras["docs"] = DOCUMENTATION + problem.reason
    return extras


def _dialect_body(problem: Problem, dialect: Dialect, message: str, extras: dict[str, Any]) -> dict[str, Any]:
    """Return the envelope: TGI's clients need `error` to be a string, OpenAI's an object that holds everything."""
    error_type = _error_type(problem)
    param = None if problem.param is None else one_line(problem.param, 200)
    match dialect:
        case Dialect.NATIVE:
            own = {"error": message, "error_type": error_type, "code": problem.reason}
            return own | extras if param is None else own | {"param": param} | extras
        case Dialect.OPENAI:
            error = {"message": message, "type": _kind(problem), "param": param, "code": problem.reason} | extras
            return {"error": error, "error_type": error_type}
        case _ as unreachable:
            assert_never(unreachable)


def _kind(problem: Problem) -> ErrorKind:
    """Return OpenAI's `type`; an engine's 400, 413 or 422 is the request's fault whatever the reason's row says."""
    if problem.status in {400, 413, 422}:
        return ErrorKind.REQUEST
    return problem.reason.row.kind


def _error_type(problem: Problem) -> str:
    """Return TGI's `error_type`, by which its clients choose the exception that they raise."""
    if problem.error_type is not None:
        return one_line(problem.error_type, 100)
    kind = _kind(problem)
    match kind:
        case ErrorKind.REQUEST | ErrorKind.CONFLICT | ErrorKind.PERMISSION:
            return "validation"  # of a 403 without it text-generation says that a shard is not ready
        case ErrorKind.AUTHENTICATION | ErrorKind.NOT_FOUND:
            return kind.removesuffix("_error")  # no word of TGI's fits, so its clients go by the status
        case ErrorKind.RATE:
            return "overloaded"
        case ErrorKind.SERVER:
            return "generation" if problem.reason.row.retry is Retry.UNSAFE else "overloaded"
        case _ as unreachable:
            assert_never(unreachable)


def _asks_for_problem_json(accept: str) -> bool:
    """Say whether an Accept header names problem+json itself; a wildcard is every client's default and asks nothing."""
    for media_range in accept.lower().split(","):
        media_type, *parameters = (part.strip() for part in media_range.split(";"))
        if media_type == PROBLEM_JSON:
            return not any(
                parameter.replace(" ", "").rstrip("0").rstrip(".") in {"q=", "q=0"} for parameter in parameters
            )
    return False


def _problem_json(problem: Problem, status: int, message: str, extras: dict[str, Any]) -> dict[str, Any]:
    """Return RFC 9457's object; `violated-policies` belongs to the draft's two types."""
    body: dict[str, Any] = {"type": "about:blank", "title": _title(problem.reason, status)}
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        body |= {"type": _QUOTA_EXCEEDED, "violated-policies": [_policy_name(problem)]}
    elif status == HTTPStatus.SERVICE_UNAVAILABLE:
        body |= {"type": _REDUCED_CAPACITY, "violated-policies": []}
    return body | {"status": status, "detail": message} | extras


def _title(reason: Reason, status: int) -> str:
    """Return the status phrase; an engine's unregistered status has none, so the reason's meaning stands in."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return reason.row.meaning
