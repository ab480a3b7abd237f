"""Answers that are no refusals, in OpenAPI: those of the gateway itself in full, those of an engine by their kind."""

from typing import Any, Final

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_OR_COUNT: Final[Schema] = {"type": ["integer", "null"], "minimum": 0}
_NULL: Final[Schema] = {"type": "null"}


def _object(properties: Schema, optional: Schema | None = None) -> Schema:
    return {
        "type": "object",
        "properties": properties | (optional or {}),
        "required": list(properties),
        "additionalProperties": False,
    }


def _json(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _report(name: str) -> Schema:
    """Return a report of an operator's command line: told by its schema's name and open to more fields."""
    return {"type": "object", "properties": {"schema": {"const": f"llmshed.{name}/1"}}, "required": ["schema"]}


def _generated(schema: Schema, *, whole: bool = True, streamed: bool = True) -> Schema:
    """Return an engine's answer, which is passed on as it is."""
    kinds = {"application/json": whole, "text/event-stream": streamed}
    schemas = {"application/json": schema, "text/event-stream": {}}  # OpenAPI 3.1 has no words for events
    description = "The engine's answer; a stream that fails ends with one event of the form of a refusal."
    return {"description": description, "content": {kind: {"schema": schemas[kind]} for kind in kinds if kinds[kind]}}


_TOKENS: Final = _list(_object({"id": _COUNT, "text": _TEXT, "start": _COUNT, "stop": _COUNT}))
_LIMITS: Final = {
    "max_input_tokens": _OR_COUNT,
    "max_output_tokens": _OR_COUNT,
    "default_output_tokens": _OR_COUNT,
}
_LANE: Final = {"anyOf": [_object({**_LIMITS, "max_total_tokens": _OR_COUNT}), _NULL]}
_POOL: Final = _object(
    {
        "model": _TEXT,
        "aliases": _list(_TEXT),
        "calibrated": {"type": "boolean"},
        "lanes": {"type": "object", "additionalProperties": _LANE},
    }
)
_MODEL: Final = _object({"id": _TEXT, "object": {"const": "model"}, "created": _COUNT, "owned_by": _TEXT})
_INFO: Final = {
    "model_id": _TEXT,
    "model_sha": _NULL,
    "model_pipeline_tag": _NULL,
    **dict.fromkeys(("max_concurrent_requests", "max_best_of", "max_stop_sequences"), _COUNT),
    **dict.fromkeys(("max_input_tokens", "max_total_tokens", "validation_workers", "max_client_batch_size"), _COUNT),
    "router": {"const": "llmshed"},
    "version": _TEXT,
    "sha": _NULL,
    "docker_label": _NULL,
}
_LIMITS_REPORT: Final = _object(
    {
        "schema": {"const": "llmshed.limits/1"},
        "version": _TEXT,
        "config_version": _TEXT,
        "calibrated": {"type": "boolean"},
        **dict.fromkeys(("max_body_bytes", "max_headers", "max_header_bytes"), _COUNT),
        "max_retry_after_seconds": {"type": "number", "minimum": 0},
        "lanes": {"type": "object", "additionalProperties": _object(_LIMITS)},
        "pools": _list(_POOL),
    },
    {"admin": {"type": "string", "description": "where the admin listener is, for callers on its machine"}},
)
_RELOADED: Final = _object(
    {
        "schema": {"const": "llmshed.reload/1"},
        "in_force": {"type": "boolean"},
        "config_version": _TEXT,
        "problems": _list(_TEXT),
        "kept": _list(_TEXT),
    }
)

EMPTY: Final[Schema] = {"description": "The gateway takes requests; no body."}
ALLOWED: Final[Schema] = {"description": "Which methods the path takes, in `allow`; no body."}
WRAPPED: Final = _generated(_list({"type": "object"}))
WHOLE: Final = _generated({"type": "object"}, streamed=False)
STREAMED: Final = _generated({}, whole=False)
EITHER: Final = _generated({"type": "object"})
TOKENS: Final = _json("The tokens of the prompt, with the characters that each stands for.", _TOKENS)
CHAT_TOKENS: Final = _json(
    "The rendered chat and its tokens.", _object({"tokenize_response": _TOKENS, "templated_text": _TEXT})
)
INFO: Final = _json("The first pool, in TGI's shape.", _object(_INFO))
MODELS: Final = _json("The models, in OpenAI's shape.", _object({"object": {"const": "list"}, "data": _list(_MODEL)}))
LIMITS: Final = _json("What is accepted of a request, by lane and pool.", _LIMITS_REPORT)
DOCUMENT: Final = _json("This document.", {"type": "object"})

METRICS: Final[Schema] = {
    "description": "All metrics, in Prometheus's text format.",
    "content": {"text/plain": {"schema": _TEXT}},
}
ALIVE: Final[Schema] = {"description": "The process answers.", "content": {"text/plain": {"schema": _TEXT}}}
READY: Final[Schema] = {
    "description": "Whether requests are taken; what fails, if not. With `verbose` all checks, as JSON.",
    "content": {"text/plain": {"schema": _TEXT}, "application/json": {"schema": _report("ready")}},
}
STATE: Final = _json("Every ledger and queue as it stands.", _report("state"))
DECISIONS: Final = _json("Decisions, newest first.", _report("decisions"))
CLASSIFIED: Final = _json("The verdict that the request would get now.", _report("classify"))
LADDERS: Final = _json("Where the pools stand on their ladders.", _report("ladder_status"))
LADDER_HISTORY: Final = _json("What happened to ladders, newest first.", _report("ladder_history"))
HELD: Final = _json("What is in force now, or would be.", _report("ladder_trigger"))
RELEASED: Final = _json("What is in force now.", _report("ladder_release"))
UNWRITTEN: Final = _json("It could not be written down, so nothing was changed.", {"type": "object"})
DRILL: Final = _json("What a drill needs to know.", _report("ladder_drill"))
RELOADED: Final = _json("What came of it.", _RELOADED)
KEPT: Final = _json(
    "The file is not valid, and the old configuration stays; or the request itself is refused.",
    {"anyOf": [_RELOADED, {"$ref": "#/components/schemas/NativeError"}]},
)
