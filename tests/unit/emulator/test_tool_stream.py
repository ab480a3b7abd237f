"""Tool calls in chat streams, after the cases in TGI's own router/src/chat.rs."""

import json
from typing import Any

import pytest

from llmshed.emulator.forms import Parameters, read_form
from llmshed.emulator.schema_text import grammar_text, schema_text, tool_text
from llmshed.emulator.tool_stream import NoTool, ToolStream, cut_text, parse_call

WEATHER = {
    "type": "function",
    "function": {
        "description": None,
        "name": "get_weather",
        "arguments": json.dumps(
            {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
        ),
    },
}


def test_a_call_is_told_as_its_name_a_brace_and_then_the_arguments() -> None:
    stream = ToolStream()
    pieces = ['{"', 'function": {"_', 'name": "get_weather"', ', "city": "', "Paris", '"', "}}", "</s>"]
    told = [function for piece in pieces if (function := stream.push(piece)) is not None]
    assert told[0] == {"name": "get_weather", "arguments": "{"}
    assert all(function["name"] is None for function in told[1:])
    assert "".join(function["arguments"] for function in told) == '{, "city": "Paris"}'


def test_picking_no_tool_stops_the_stream() -> None:
    stream = ToolStream()
    assert stream.push('{"function": {"_name": "no_') is None
    with pytest.raises(NoTool):
        stream.push('tool"')


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"function": []}', '{"function": {"name": "x"}}', '{"function"']
)
def test_other_text_is_no_call(text: str) -> None:
    assert parse_call(text) is None


def test_a_forced_call_fits_the_schema_of_its_tool() -> None:
    assert parse_call(tool_text(WEATHER)) == ("get_weather", {"city": "text", "days": 1})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "array"}}}, {"a": True, "b": []}),
        ({"type": "object"}, {}),
        ({"enum": ["red", "green"]}, "red"),
        ({"const": 3}, 3),
        ({"type": "number"}, 1),
        ({"type": "null"}, None),
        ({"$ref": "#/x"}, "text"),
        (True, "text"),
    ],
)
def test_a_schema_gets_its_simplest_value(schema: Any, value: Any) -> None:
    assert json.loads(schema_text(schema)) == value


def test_grammars_that_are_schemas_are_followed_and_others_are_not() -> None:
    schema = {"properties": {"a": {"type": "integer"}}}
    for grammar in (
        {"type": "json", "value": schema},
        {"type": "json", "value": json.dumps(schema)},
        {"type": "json_object", "value": schema},
        {"type": "json_schema", "value": {"schema": schema}},
    ):
        assert grammar_text(read_form(Parameters, {"grammar": grammar}).grammar) == '{"a": 1}'
    for other in ({"type": "regex", "value": "a+"}, {"type": "json", "value": "{"}, None):
        assert grammar_text(read_form(Parameters, {"grammar": other}).grammar) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"function": {', 'EOF while parsing an object at line 1 column 14 "{\\"function\\": {"'),
        ('{"func', 'EOF while parsing a string at line 1 column 6 "{\\"func"'),
        ('{"a": "\\"', 'EOF while parsing a string at line 1 column 9 "{\\"a\\": \\"\\\\\\""'),
        ('{"ü": 1', 'EOF while parsing an object at line 1 column 8 "{\\"ü\\": 1"'),
    ],
)
def test_a_cut_call_is_told_as_the_engine_s_reader_tells_it(text: str, told: str) -> None:
    assert cut_text(text) == told
