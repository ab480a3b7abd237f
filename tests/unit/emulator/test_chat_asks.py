"""What a chat body settles before anything is rendered."""

from typing import Any

import pytest

from llmshed.emulator.chat_asks import check_form, next_call_id
from llmshed.emulator.forms import ChatForm, FormError, read_form


def form(**fields: Any) -> ChatForm:
    return read_form(ChatForm, {"messages": [{"role": "user", "content": "x"}], **fields})


def turns(*ids: str) -> ChatForm:
    function = {"name": "f", "arguments": {}}
    calls = [{"id": one, "type": "function", "function": function} for one in ids]
    return form(messages=[{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": calls}])


def test_the_first_call_of_a_conversation_is_number_0() -> None:
    assert next_call_id(form()) == "0"


def test_a_call_is_numbered_above_all_before_it() -> None:
    assert next_call_id(turns("0", "4", "2")) == "5"


def test_an_id_that_is_no_number_makes_an_id_of_another_kind() -> None:
    made = next_call_id(turns("0", "call_abc"))
    assert len(made) == 36
    assert made == next_call_id(turns("0", "call_abc")) != next_call_id(turns("0", "call_abd"))


@pytest.mark.parametrize("choice", [None, "auto", "none", "get", {"type": "function", "function": {"name": "get"}}])
def test_a_choice_is_a_word_a_name_or_a_function(choice: Any) -> None:
    check_form(form(tool_choice=choice))


@pytest.mark.parametrize(
    "choice", [{"type": "function"}, {"function": {"name": "get"}}, {"type": "tool", "function": 3}]
)
def test_any_other_choice_is_no_body(choice: Any) -> None:
    with pytest.raises(FormError, match="ToolTypeDeserializer"):
        check_form(form(tool_choice=choice))
