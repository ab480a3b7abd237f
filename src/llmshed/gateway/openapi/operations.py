"""What each path and method does, takes and may be refused for; the tables of routes say which there are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from llmshed.admission.reasons import Reason
from llmshed.engines.base import Route
from llmshed.gateway.openapi import answers
from llmshed.gateway.openapi.bodies import body_schema, drill_schema, hold_schema, question_schema, release_schema

Schema = dict[str, Any]

AT_THE_DOOR: Final = frozenset(
    {
        Reason.MALFORMED,
        Reason.UNAUTHENTICATED,
        Reason.HEADERS_TOO_LARGE,
        Reason.DRAINING,
        Reason.INTERNAL_ERROR,
    }
)
"""Reasons of every route: its framing, its key, its headers, and what may happen to any request."""
AT_THE_ADMIN_DOOR: Final = AT_THE_DOOR - {Reason.DRAINING} | {Reason.FORBIDDEN}
_OF_BODIES: Final = AT_THE_DOOR - {Reason.DRAINING} | {
    Reason.DUPLICATE_KEY,
    Reason.UNSUPPORTED_FIELD,
    Reason.NOT_FOUND,
    Reason.BODY_TOO_LARGE,
    Reason.COUNTING_BACKLOG,
    Reason.TOKENIZER_UNAVAILABLE,
}
_OF_COUNTING: Final = _OF_BODIES | {
    Reason.FORBIDDEN,
    Reason.CONTENT_ENCODING,
    Reason.CONTEXT_LIMIT,
    Reason.TENANT_QUOTA,
    Reason.NO_REPLICA,
    Reason.DRAINING,
    Reason.STARTING,
}
_OF_GENERATING: Final = frozenset(Reason) - {Reason.METHOD_NOT_ALLOWED}


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    Args:
        summary: what it does.
        answers: its answers that are no refusals, by status.
        reasons: what it may be refused for.
        body: schema of its body; None for one without.
        asks_engine: whether an engine answers, whose own refusals of the request are passed on.
        parameters: what may stand in its query.
    """

    summary: str
    answers: Mapping[int, Schema]
    reasons: frozenset[Reason]
    body: Schema | None = None
    asks_engine: bool = False
    parameters: tuple[Schema, ...] = ()


def _generates(route: Route, summary: str, answer: Schema) -> Operation:
    return Operation(summary, {200: answer}, _OF_GENERATING, body_schema(route), asks_engine=True)


def _counts(route: Route, summary: str, answer: Schema) -> Operation:
    return Operation(summary, {200: answer}, _OF_COUNTING, body_schema(route))


_HEALTH: Final = Operation(
    "Say whether requests are taken.", {200: answers.EMPTY}, AT_THE_DOOR | {Reason.NO_REPLICA, Reason.STARTING}
)

DATA_OPERATIONS: Final[Mapping[tuple[str, str], Operation]] = {
    ("GET", "/"): _HEALTH,
    ("POST", "/"): _generates(Route.ROOT, "Generate, streamed if the body says so.", answers.WRAPPED),
    ("POST", "/generate"): _generates(Route.GENERATE, "Generate.", answers.WHOLE),
    ("POST", "/generate_stream"): _generates(Route.GENERATE_STREAM, "Generate a stream.", answers.STREAMED),
    ("POST", "/v1/chat/completions"): _generates(Route.CHAT, "Answer a chat.", answers.EITHER),
    ("POST", "/v1/completions"): _generates(Route.COMPLETIONS, "Complete prompts.", answers.EITHER),
    ("POST", "/tokenize"): _counts(Route.TOKENIZE, "List the tokens of a prompt.", answers.TOKENS),
    ("POST", "/chat_tokenize"): _counts(Route.CHAT_TOKENIZE, "List the tokens of a chat.", answers.CHAT_TOKENS),
    ("GET", "/info"): Operation("Describe the model.", {200: answers.INFO}, AT_THE_DOOR | {Reason.STARTING}),
    ("GET", "/health"): _HEALTH,
    ("GET", "/v1/models"): Operation("List the models.", {200: answers.MODELS}, AT_THE_DOOR),
    ("GET", "/v1/llmshed/limits"): Operation("Tell what is accepted.", {200: answers.LIMITS}, AT_THE_DOOR),
    ("GET", "/openapi.json"): Operation("Tell of all routes.", {200: answers.DOCUMENT}, AT_THE_DOOR),
}


def _query(name: str, description: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _looks(summary: str, answer: Schema, *parameters: Schema, reasons: frozenset[Reason] = frozenset()) -> Operation:
    return Operation(summary, {200: answer}, AT_THE_ADMIN_DOOR | reasons, parameters=parameters)


ADMIN_OPERATIONS: Final[Mapping[tuple[str, str], Operation]] = {
    ("GET", "/metrics"): _looks("Tell all metrics.", answers.METRICS),
    ("GET", "/livez"): _looks("Say whether the process answers.", answers.ALIVE),
    ("GET", "/readyz"): Operation(
        "Say whether requests are taken.",
        {200: answers.READY, 503: answers.READY},
        AT_THE_ADMIN_DOOR,
        parameters=(_query("verbose", "Whatever it says, list all checks.", {"type": "string"}),),
    ),
    ("GET", "/admin/state"): _looks("Tell what the gateway holds.", answers.STATE),
    ("GET", "/admin/decisions"): _looks(
        "Tell the last decisions.",
        answers.DECISIONS,
        _query("n", "How many.", {"type": "integer", "minimum": 1, "maximum": 9_999_999}),
        _query("request_id", "Only those of this request.", {"type": "string"}),
    ),
    ("GET", "/admin/decisions/{request_id}"): _looks(
        "Tell what was decided on a request.",
        answers.DECISIONS,
        {"name": "request_id", "in": "path", "required": True, "schema": {"type": "string"}},
        reasons=frozenset({Reason.NOT_FOUND}),
    ),
    ("GET", "/admin/openapi.json"): _looks("Tell of all routes.", answers.DOCUMENT),
    ("POST", "/admin/reload"): Operation(
        "Read the configuration again.", {200: answers.RELOADED, 400: answers.KEPT}, AT_THE_ADMIN_DOOR
    ),
    ("POST", "/admin/classify"): Operation(
        "Say what would become of a request.",
        {200: answers.CLASSIFIED},
        _OF_BODIES | AT_THE_ADMIN_DOOR,
        question_schema(),
    ),
    ("GET", "/admin/ladder"): _looks("Tell where pools stand on their ladders.", answers.LADDERS),
    ("GET", "/admin/ladder/history"): _looks(
        "Tell what happened to ladders.",
        answers.LADDER_HISTORY,
        _query("n", "How many.", {"type": "integer", "minimum": 1, "maximum": 9_999_999}),
    ),
    ("POST", "/admin/ladder/trigger"): Operation(
        "Hold a rung for a time.",
        {200: answers.HELD, 503: answers.UNWRITTEN},
        AT_THE_ADMIN_DOOR | {Reason.DUPLICATE_KEY, Reason.BODY_TOO_LARGE},
        hold_schema(),
    ),
    ("POST", "/admin/ladder/release"): Operation(
        "Give up the rung that is held.",
        {200: answers.RELEASED, 503: answers.UNWRITTEN},
        AT_THE_ADMIN_DOOR | {Reason.DUPLICATE_KEY, Reason.BODY_TOO_LARGE},
        release_schema(),
    ),
    ("POST", "/admin/ladder/drill"): Operation(
        "Draw a pass for a drill, and tell what it is to try.",
        {200: answers.DRILL},
        AT_THE_ADMIN_DOOR | {Reason.DUPLICATE_KEY, Reason.BODY_TOO_LARGE},
        drill_schema(),
    ),
}
