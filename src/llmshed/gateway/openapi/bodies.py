"""Request bodies as JSON Schema, from the tables of fields by which bodies are read."""

from collections.abc import Mapping
from typing import Any, Final, assert_never

from llmshed.admission.request import Intent, PriorityClass
from llmshed.engines.base import Route
from llmshed.engines.fields import INT32_MAX, UINT64_MAX, Fate, FieldTable, Kind
from llmshed.engines.prompt_forms import MAX_PROMPTS
from llmshed.engines.tgi.fields import (
    IMAGE_PART_FIELDS,
    IMAGE_URL_FIELDS,
    MESSAGE_FIELDS,
    PARAMETER_FIELDS,
    ROUTE_FIELDS,
    STREAM_OPTIONS,
    TEXT_PART_FIELDS,
)

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_FILLED: Final[Schema] = {"type": "string", "minLength": 1}
KIND_SCHEMAS: Final[Mapping[Kind, Schema]] = {
    Kind.ANY: {},
    Kind.BOOLEAN: {"type": "boolean"},
    Kind.INTEGER: {"type": "integer", "minimum": 0, "maximum": INT32_MAX},
    Kind.COUNT: {"type": "integer", "minimum": 1, "maximum": INT32_MAX},
    Kind.COPIES: {"type": "integer", "minimum": 1, "maximum": 128},
    Kind.SEED: {"type": "integer", "minimum": 0, "maximum": UINT64_MAX},
    Kind.NUMBER: {"type": "number"},
    Kind.TEXT: _TEXT,
    Kind.HINT: {"type": "string", "maxLength": 256},
    Kind.TEXTS: {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
    Kind.CHOICE: {"type": ["string", "object"]},
    Kind.OBJECT: {"type": "object"},
    Kind.OBJECTS: {"type": "array", "items": {"type": "object"}},
}
"""What each kind of field holds."""
_NEEDED: Final = {
    Route.ROOT: "inputs",
    Route.GENERATE: "inputs",
    Route.GENERATE_STREAM: "inputs",
    Route.TOKENIZE: "inputs",
    Route.CHAT: "messages",
    Route.CHAT_TOKENIZE: "messages",
    Route.COMPLETIONS: "prompt",
}


def body_schema(route: Route) -> Schema:
    """Return the schema of a route's body: each field that is taken, null where it may be absent, and no other."""
    schema = _object(ROUTE_FIELDS[route], (_NEEDED[route],))
    properties = schema["properties"]
    match route:
        case Route.CHAT | Route.CHAT_TOKENIZE:
            properties["messages"] = {**properties["messages"], "items": _message()}
            properties["stream_options"] = _or_null(_object(STREAM_OPTIONS))
        case Route.COMPLETIONS:
            texts = {"type": "array", "items": _FILLED, "minItems": 1, "maxItems": MAX_PROMPTS}
            properties["prompt"] = {**properties["prompt"], "anyOf": [_FILLED, texts]}
        case Route.ROOT | Route.GENERATE | Route.GENERATE_STREAM:
            properties["inputs"] = {**properties["inputs"], **_FILLED}
            properties["parameters"] = _or_null(_object(PARAMETER_FIELDS))
        case Route.TOKENIZE:
            properties["inputs"] = {**properties["inputs"], **_FILLED}
        case _ as unreachable:
            assert_never(unreachable)
    return schema


def question_schema() -> Schema:
    """Return the schema of what `/admin/classify` is asked: sizes that are stated, or a body that is counted."""
    tokens = {"type": ["integer", "null"], "maximum": INT32_MAX}
    properties = {
        "input_tokens": {"type": "integer", "minimum": 0, "maximum": INT32_MAX},
        "route": {"enum": [route.value for route in Route if route.generates]},
        "body": {"type": "object"},
        "max_output": {**tokens, "minimum": 1},
        "intent": {"enum": [*Intent, None]},
        "class": {"enum": [*PriorityClass, None]},
        "tenant": _TEXT,
        "model": _or_null(_TEXT),
    }
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "oneOf": [
            {"required": ["input_tokens"], "not": {"required": ["body"]}},
            {"required": ["route", "body"], "not": {"required": ["input_tokens"]}},
        ],
    }


def hold_schema() -> Schema:
    """Return the schema of what `/admin/ladder/trigger` is asked."""
    properties = {
        "pool": _or_null(_TEXT),
        "rung": _TEXT,
        "for_seconds": {"type": "number", "minimum": 60, "maximum": 604_800},
        "reason": {"type": "string", "minLength": 1, "maxLength": 512, "pattern": r"^[^\p{C}]*[^\p{C}\p{Z}][^\p{C}]*$"},
        "dry_run": _or_null({"type": "boolean"}),
    }
    needed = ["rung", "for_seconds", "reason"]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


def release_schema() -> Schema:
    """Return the schema of what `/admin/ladder/release` is asked."""
    reason = {"type": "string", "minLength": 1, "maxLength": 512}
    properties = {"pool": _or_null(_TEXT), "reason": _or_null(reason)}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def drill_schema() -> Schema:
    """Return the schema of what `/admin/ladder/drill` is asked: the pool, where several have a ladder."""
    return {"type": "object", "properties": {"pool": _or_null(_TEXT)}, "additionalProperties": False}


def _message() -> Schema:
    """Return the schema of a message, which has content unless it calls tools."""
    schema = _object(MESSAGE_FIELDS, ("role",))
    image = _object(IMAGE_PART_FIELDS, ("type", "image_url"))
    image["properties"] |= {
        "type": {"const": "image_url"},
        "image_url": _object(IMAGE_URL_FIELDS, ("url",)),
    }
    text = _object(TEXT_PART_FIELDS, ("type", "text"))
    text["properties"]["type"] = {"const": "text"}
    parts = {"type": "array", "items": {"anyOf": [text, image]}}
    schema["properties"]["content"] = {"anyOf": [_TEXT, parts, {"type": "null"}]}
    return {**schema, "anyOf": [{"required": ["content"]}, {"required": ["tool_calls"]}]}


def _object(table: FieldTable, needed: tuple[str, ...] = ()) -> Schema:
    properties: dict[str, Schema] = {}
    for name, row in table.items():
        if row.fate is Fate.REFUSED:
            continue
        kind = KIND_SCHEMAS[row.kind]
        properties[name] = kind if name in needed or row.kind is Kind.ANY else _or_null(kind)
        notes = [row.note] if row.note else []
        if row.fate is Fate.DROPPED:
            notes.append("taken, and not forwarded")
        if notes:
            properties[name] = {**properties[name], "description": "; ".join(notes)}
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(needed)} if needed else schema


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}
