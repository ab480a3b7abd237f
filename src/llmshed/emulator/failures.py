"""TGI's errors: status, kind and text, told as JSON before an answer and as an event inside one."""

from typing import Any

import orjson
from aiohttp import web

from llmshed.errors import LlmshedError
from llmshed.simulation.limits import InputTooLong, LimitProblem

_REASONS = {413: "Payload Too Large"}
"""Reason phrases that Rust's HTTP library words otherwise than Python's."""


class TgiError(LlmshedError):
    """An error that TGI would tell.

    Args:
        status: status of a whole answer; a stream has begun with 200 by then.
        error_type: TGI's word.
        message: TGI's text.
        metric: label `err` of `tgi_request_failure`; None when TGI does not count it there.
    """

    def __init__(self, status: int, error_type: str, message: str, metric: str | None = None) -> None:
        """Keep the parts."""
        super().__init__(message)
        self.status = status
        self.error_type = error_type
        self.metric = metric

    @property
    def envelope(self) -> dict[str, str]:
        """Return `{"error": ..., "error_type": ...}`, the same on every route."""
        return {"error": str(self), "error_type": self.error_type}


def overloaded() -> TgiError:
    """Return the error of a request that found no permit."""
    return TgiError(429, "overloaded", "Model is overloaded", "overloaded")


def invalid(text: str) -> TgiError:
    """Return a failed validation."""
    return TgiError(422, "validation", f"Input validation error: {text}", "validation")


def bad_template(text: str) -> TgiError:
    """Return a chat template that is missing or refuses the messages."""
    return TgiError(422, "template_error", f"Template error: {text}", "template")


def bad_tools(text: str) -> TgiError:
    """Return a fault in tools or in their choice."""
    return TgiError(422, "tool_error", f"Tool error: {text}")


def lost_batch(text: str) -> TgiError:
    """Return what every request of a failed batch is told; the router puts its own words before the shard's."""
    return TgiError(424, "generation", f"Request failed during generation: Server error: {text}", "generation")


def incomplete(text: str, error_type: str) -> TgiError:
    """Return the error of a stream that stopped without an end."""
    return TgiError(500, error_type, text, "incomplete")


def unhealthy() -> TgiError:
    """Return what `/health` says of a replica whose shards do not answer."""
    return TgiError(503, "healthcheck", "unhealthy")


def over_limit(problem: LimitProblem) -> TgiError:
    """Return the validation error of a prompt that exceeds a limit."""
    if isinstance(problem, InputTooLong):
        return invalid(f"`inputs` must have less than {problem.max_input_tokens} tokens. Given: {problem.input_tokens}")
    return invalid(
        f"`inputs` tokens + `max_new_tokens` must be <= {problem.max_total_tokens}. "
        f"Given: {problem.input_tokens} `inputs` tokens and {problem.chunk_tokens} `max_new_tokens`"
    )


def openai_event(error: TgiError) -> dict[str, Any]:
    """Return the error object inside an OpenAI stream; TGI writes 422 whatever happened."""
    return {"error": {"message": str(error), "http_status_code": 422}}


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """Return a JSON answer as axum writes it: compact, without a charset."""
    return web.Response(body=orjson.dumps(value), status=status, headers=headers, content_type="application/json")


def error_answer(error: TgiError) -> web.Response:
    """Return an error before the answer began."""
    return json_answer(error.envelope, error.status)


def text_answer(status: int, text: str) -> web.Response:
    """Return what axum itself answers to a body that it cannot read."""
    return web.Response(text=text, status=status, reason=_REASONS.get(status))
