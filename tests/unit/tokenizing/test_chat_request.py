from typing import Any

import pytest

from llmshed.errors import PromptError
from llmshed.tokenizing.chat_request import TEMPLATE_ARGUMENTS, chat_prompt
from llmshed.tokenizing.prompts import ChatPrompt

HI = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


def test_a_bare_chat_has_no_tools_and_no_arguments() -> None:
    assert chat_prompt({"messages": HI, "model": "m", "max_tokens": 5}) == ChatPrompt(HI)


def test_all_that_changes_the_count_is_taken_over() -> None:
    body = {
        "messages": HI,
        "tools": [TOOL],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "tool_prompt": "Use them.",
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert chat_prompt(body) == ChatPrompt(HI, [TOOL], body["tool_choice"], "Use them.", {"enable_thinking": False})


def test_null_is_absence_and_an_empty_list_of_tools_is_not() -> None:
    nulls = dict.fromkeys(("tools", "tool_choice", "tool_prompt", "chat_template_kwargs", "chat_template"))
    assert chat_prompt({"messages": HI, **nulls}) == ChatPrompt(HI)
    assert chat_prompt({"messages": HI, "tools": []}).tools == []


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("messages", None, "messages"),
        ("messages", [], "messages"),
        ("messages", "hi", "messages"),
        ("messages", {"role": "user"}, "messages"),
        ("messages", ["hi"], r"messages\[0\]"),
        ("messages", [*HI, {"content": "hi"}], r"messages\[1\].role"),
        ("messages", [{"role": 1, "content": "hi"}], r"messages\[0\].role"),
        ("tools", {}, "tools"),
        ("tools", "f", "tools"),
        ("tools", [1], r"tools\[0\]"),
        ("tool_choice", 1, "tool_choice"),
        ("tool_choice", {"type": "function"}, "tool_choice"),
        ("tool_choice", {"type": "tool", "function": {"name": "f"}}, "tool_choice"),
        ("tool_prompt", 1, "tool_prompt"),
        ("chat_template_kwargs", [], "chat_template_kwargs"),
        ("chat_template_kwargs", {"chat_template": "{{ 1 }}"}, "chat_template_kwargs.chat_template"),
        ("chat_template_kwargs", {"messages": []}, "chat_template_kwargs"),
        ("chat_template_kwargs", {"add_generation_prompt": False}, "chat_template_kwargs"),
        ("chat_template_kwargs", {"__class__": True}, "chat_template_kwargs"),
        ("chat_template_kwargs", {"enable_thinking": [True]}, "chat_template_kwargs.enable_thinking"),
        ("chat_template_kwargs", {"thinking_budget": 2**31}, "chat_template_kwargs.thinking_budget"),
        ("chat_template_kwargs", {"thinking_budget": 0.5}, "chat_template_kwargs.thinking_budget"),
        ("chat_template_kwargs", {"reasoning_effort": "x" * 65}, "chat_template_kwargs.reasoning_effort"),
        ("chat_template", "{{ 10 ** 10 ** 7 }}", "chat_template"),
    ],
)
def test_other_forms_are_refused_by_the_name_of_the_field(field: str, value: Any, named: str) -> None:
    with pytest.raises(PromptError, match=f"^{named}:"):
        chat_prompt({"messages": HI, field: value})


def test_arguments_that_public_templates_take_are_taken() -> None:
    given = {"enable_thinking": False, "thinking": None, "reasoning_effort": "high", "thinking_budget": 512}
    assert chat_prompt({"messages": HI, "chat_template_kwargs": given}).template_kwargs == given
    assert not TEMPLATE_ARGUMENTS & {"messages", "tools", "documents", "add_generation_prompt", "chat_template"}
    assert not any(name.endswith("_token") for name in TEMPLATE_ARGUMENTS)


def test_an_error_does_not_repeat_what_it_was_sent() -> None:
    with pytest.raises(PromptError) as caught:
        chat_prompt({"messages": [{"role": ["secret"], "content": "secret"}]})
    assert "secret" not in str(caught.value)
