from typing import Any

import pytest

from llmshed.errors import PromptError
from llmshed.tokenizing.prompts import ChatPrompt
from llmshed.tokenizing.tgi_messages import flatten, tools_in_use

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "x": 1.0}}}
CLOCK = {
    "type": "function",
    "function": {"name": "clock", "description": "Tell the time", "arguments": {}},
    "strict": True,
}


def chosen(choice: Any, tools: list[Any] | None = None) -> Any:
    return tools_in_use(ChatPrompt([], tools=[WEATHER, CLOCK] if tools is None else tools, tool_choice=choice))


def names(choice: Any, tools: list[Any] | None = None) -> list[str] | None:
    found = chosen(choice, tools)
    return None if found is None else [tool["function"]["name"] for tool in found]


def test_a_tool_is_rewritten_with_its_parameters_as_one_json_string() -> None:
    assert chosen("required") == [
        {
            "type": "function",
            "function": {"description": None, "name": "weather", "arguments": '{"type":"object","x":1.0}'},
        },
        {"type": "function", "function": {"description": "Tell the time", "name": "clock", "arguments": "{}"}},
    ]
    assert list(chosen("required")[0]["function"]) == ["description", "name", "arguments"]


@pytest.mark.parametrize(
    ("choice", "used"),
    [
        (None, ["weather", "clock", "no_tool"]),
        ("auto", ["weather", "clock", "no_tool"]),
        ("required", ["weather", "clock"]),
        ("none", None),
        ("clock", ["clock"]),
        ({"type": "function", "function": {"name": "clock"}}, ["clock"]),
    ],
)
def test_the_choice_decides_which_tools_are_shown(choice: Any, used: list[str] | None) -> None:
    assert names(choice) == used


def test_an_empty_list_still_gets_tgis_own_function_unless_tools_are_required() -> None:
    assert names(None, []) == ["no_tool"]
    assert names("required", []) is None


def test_no_tools_at_all_is_no_tools() -> None:
    assert tools_in_use(ChatPrompt([], tool_choice="required")) is None


def test_a_choice_of_what_is_not_offered_is_refused() -> None:
    with pytest.raises(PromptError, match="'nothing'"):
        chosen("nothing")


@pytest.mark.parametrize(
    "tool",
    [
        {},
        {"type": "function"},
        {"type": 1, "function": {"name": "f", "parameters": {}}},
        {"type": "function", "function": {"parameters": {}}},
        {"type": "function", "function": {"name": "f"}},
        {"type": "function", "function": {"name": "f", "parameters": {}, "arguments": {}}},
        {"type": "function", "function": {"name": "f", "parameters": {}, "description": 1}},
        {"type": "function", "function": {"name": "\ud800", "parameters": {}}},
        {"type": "function", "function": {"name": "f", "parameters": {"a": "\ud800"}}},
        "function",
    ],
)
def test_a_tool_that_serde_would_refuse_is_refused(tool: Any) -> None:
    with pytest.raises(PromptError):
        chosen("auto", [tool])


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"role": "user", "content": "hi", "name": "Ann", "tool_call_id": "1"}, "hi"),
        ({"role": "user", "content": []}, ""),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab"),
        (
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "http://x/y"}}],
            },
            "a![](http://x/y)",
        ),
        ({"role": "assistant", "content": "said", "tool_calls": [{"bad": 1}]}, "said"),
        (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "0", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}, "index": 0}
                ],
            },
            (
                '[{"id":"0","type":"function","function":{"description":null,"name":"f",'
                '"arguments":"\\"{\\\\\\"a\\\\\\": 1}\\""}}]'
            ),
        ),
        ({"role": "assistant", "tool_calls": []}, "[]"),
    ],
)
def test_a_message_becomes_role_and_text(message: dict[str, Any], content: str) -> None:
    assert flatten([message]) == [{"role": message["role"], "content": content}]


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"role": "user"},
        {"role": 1, "content": "a"},
        {"role": "user", "content": None},
        {"role": "user", "content": 5},
        {"role": "user", "content": {"type": "text", "text": "a"}},
        {"role": "user", "content": "a", "name": 5},
        {"role": "user", "content": ["a"]},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": "http://x"}]},
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "0"}]},
        {"role": "assistant", "content": None, "tool_calls": "no"},
        {"role": "user", "content": "\ud800"},
        {"role": "\udfff", "content": ""},
        {
            "role": "assistant",
            "tool_calls": [{"id": "\ud800", "type": "function", "function": {"name": "f", "arguments": {}}}],
        },
    ],
)
def test_a_message_that_serde_would_refuse_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(PromptError):
        flatten([message])


def test_text_for_the_end_goes_to_the_last_message_unless_that_holds_tool_calls() -> None:
    said = {"role": "user", "content": "a"}
    assert [message["content"] for message in flatten([said, said], "!")] == ["a", "a!"]
    assert [message["content"] for message in flatten([said, {"role": "assistant", "tool_calls": []}], "!")] == [
        "a",
        "[]",
    ]
