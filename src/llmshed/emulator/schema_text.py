"""A smallest JSON text for a schema: what a grammar would force out of a model."""

import json
from typing import Any

_DEEPEST = 8
_SIMPLEST: dict[str, Any] = {"object": {}, "array": [], "integer": 1, "number": 1, "boolean": True, "null": None}


def schema_text(schema: Any) -> str:
    """Return JSON of the form that a JSON schema asks for; `$ref` and what is not known become a string."""
    return json.dumps(_value(schema, 0))


def tool_text(tool: dict[str, Any]) -> str:
    """Return a call of this tool in the form that TGI's grammar forces: name and arguments in one object."""
    function = tool["function"]
    arguments = _value(json.loads(function["arguments"]), 0)
    given = arguments if isinstance(arguments, dict) else {}
    return json.dumps({"function": {"_name": function["name"], **given}})


def grammar_text(grammar: dict[str, Any]) -> str | None:
    """Return an output for a grammar of a request; None for regular expressions, which are not followed."""
    match grammar:
        case {"type": "json" | "json_object", "value": dict(schema)}:
            return schema_text(schema)
        case {"type": "json_schema", "value": {"schema": dict(schema)}}:
            return schema_text(schema)
        case _:
            return None


def _value(schema: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return "text"
    match schema:
        case {"enum": [value, *_]} | {"const": value}:
            return value
        case {"properties": dict(properties)}:
            return {name: _value(part, depth + 1) for name, part in properties.items()}
        case {"type": str(kind)}:
            return _SIMPLEST.get(kind, "text")
        case _:
            return "text"
