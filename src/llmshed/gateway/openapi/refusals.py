"""Refusals in OpenAPI: what each status can mean, its headers and its bodies, from the table of reasons."""

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Any, Final

from llmshed.admission.reasons import REASON_TABLE, ErrorKind, Reason, Retry
from llmshed.admission.verdict import Advice
from llmshed.engines.base import Dialect
from llmshed.gateway.contract.problem import ENGINE_STATUSES, PassedTime
from llmshed.gateway.contract.refusals import PROBLEM_JSON

Schema = dict[str, Any]

BELOW_ROUTES: Final = frozenset({Reason.MALFORMED, Reason.HEADERS_TOO_LARGE, Reason.INTERNAL_ERROR})
"""Reasons that are also told before a request has a path, and then in the native form on every route."""
_TOKENS: Final[Schema] = {"type": ["integer", "null"], "minimum": 0}
_WAIT: Final[Schema] = {"type": "integer", "minimum": 0}


class Form(StrEnum):
    """How an answer to an operation tells a refusal."""

    NATIVE = "native"
    OPENAI = "openai"
    ADMIN = "admin"
    """As `native`, and never as problem+json."""
    BARE = "bare"
    """The answer to HEAD, which has no body."""


def form_of(dialect: Dialect) -> Form:
    """Return the form of a data route's refusals."""
    return Form(dialect.value)


def refusal_schemas(forms: Collection[Form]) -> dict[str, Schema]:
    """Return the schemas of the error bodies of these forms by name."""
    text: Schema = {"type": "string"}
    own: Schema = {
        "reason": {"enum": list(Reason)},
        "lane": text,
        "request_id": text,
        "retry_after_ms": _WAIT,
        "limits": _object(dict.fromkeys(("max_input_tokens", "max_output_tokens", "max_total_tokens"), _TOKENS)),
        "timeout": _object({"which": {"enum": list(PassedTime)}, "seconds": {"type": "number", "minimum": 0}}),
        "usage": _object({"input_tokens": {"type": "integer", "minimum": 0}, "requested_output_tokens": _TOKENS}),
        "advice": {"type": "array", "items": {"enum": list(Advice)}},
        "docs": text,
    }
    always = ("reason", "lane", "request_id", "docs")
    native = {"error": text, "error_type": text, "code": {"enum": list(Reason)}, "param": text, **own}
    openai = {
        "message": text,
        "type": {"enum": list(ErrorKind)},
        "param": {"type": ["string", "null"]},
        "code": {"enum": list(Reason)},
        **own,
    }
    problem = {
        "type": text,
        "title": text,
        "status": {"type": "integer"},
        "detail": text,
        "violated-policies": {"type": "array", "items": text},
        **own,
    }
    openai_error = _object(openai, ("message", "type", "param", "code", *always))
    native_error = _object(native, ("error", "error_type", "code", *always))
    if Form.OPENAI not in forms:
        return {"NativeError": native_error}
    return {
        "NativeError": native_error,
        "OpenaiError": _object({"error": openai_error, "error_type": text}, ("error", "error_type")),
        "Problem": _object(problem, ("type", "title", "status", "detail", *always)),
    }


def refusal_headers() -> dict[str, Schema]:
    """Return the headers of refusals by the names that responses refer to them by."""
    said = {
        "reason": ("why; one of the reasons of this status", {"enum": list(Reason)}),
        "request-id": ("the client's id if it is harmless, else a fresh one", {"type": "string"}),
        "retry-after": ("seconds until a retry makes sense", {"type": "integer", "minimum": 0}),
    }
    return {name: {"description": words, "schema": schema} for name, (words, schema) in said.items()}


def refusal_responses(form: Form) -> dict[str, Schema]:
    """Return the responses of a form by their names in `components`, one for each status that can be told."""
    statuses = {row.status for row in REASON_TABLE.values()} | set(ENGINE_STATUSES)
    return {response_name(form, status): _response(form, status) for status in sorted(statuses)}


def response_name(form: Form, status: int) -> str:
    """Return the name of a refusal in `components`."""
    return f"{form}-{status}"


def told(form: Form, reasons: Iterable[Reason], *, asks_engine: bool = False) -> dict[str, Schema]:
    """Return the responses of an operation that may be refused for these reasons, or by an engine for its own."""
    statuses = {reason.row.status for reason in reasons} | (set(ENGINE_STATUSES) if asks_engine else set())
    return {
        str(status): {"$ref": f"#/components/responses/{response_name(form, status)}"} for status in sorted(statuses)
    }


def _response(form: Form, status: int) -> Schema:
    reasons = [reason for reason, row in REASON_TABLE.items() if row.status == status]
    words = [f"`{reason}`: {reason.row.meaning}." for reason in reasons]
    if form is not Form.ADMIN and status in ENGINE_STATUSES:
        words.append("`malformed`: the engine's own judgement, whose status is passed on.")
    headers = {"x-llmshed-reason": _header("reason"), "x-request-id": _header("request-id")}
    if any(reason.row.retry is Retry.LATER for reason in reasons):
        headers["retry-after"] = _header("retry-after")
    response: Schema = {"description": "\n".join(words), "headers": headers}
    return response if form is Form.BARE else {**response, "content": _content(form, reasons)}


def _content(form: Form, reasons: list[Reason]) -> Schema:
    own = _ref("OpenaiError") if form is Form.OPENAI else _ref("NativeError")
    if form is Form.OPENAI and not BELOW_ROUTES.isdisjoint(reasons):
        own = {"anyOf": [own, _ref("NativeError")]}
    content = {"application/json": {"schema": own}}
    return content if form is Form.ADMIN else {**content, PROBLEM_JSON: {"schema": _ref("Problem")}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _header(name: str) -> Schema:
    return {"$ref": f"#/components/headers/{name}"}


def _object(properties: Schema, required: tuple[str, ...] | None = None) -> Schema:
    """Return the schema of an object that has these fields and no other; all of them are there unless it is told."""
    needed = list(properties) if required is None else list(required)
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
