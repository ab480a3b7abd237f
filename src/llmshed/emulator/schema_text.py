"""A smallest JSON text for a schema: what a grammar would force out of a model."""

import json
from typing import Any, assert_never

from llmshed.emulator.forms import Grammar, JsonGrammar, RegexGrammar, SchemaGrammar

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


def grammar_text(grammar: Grammar | None) -> str | None:
    """Return an output for a grammar; None for none, and for regular expressions, which are not followed."""
    match grammar:
        case None | RegexGrammar():
            return None
        case JsonGrammar(value=str(text)):
            return _text_of_schema_text(text)
        case JsonGrammar(value=schema):
            return schema_text(schema)
        case SchemaGrammar(value=value):
            return schema_text(value.definition)
        case _:
            assert_never(grammar)


def _text_of_schema_text(text: str) -> str | None:
    try:
        return schema_text(json.loads(text))
    except ValueError:
        return None  # refused when it is validated


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
