from typing import Any

import pytest

from llmshed.emulator.forms import ChatForm, CompletionForm, Form, FormError, GenerateForm, read_form

MESSAGES = [{"role": "user", "content": "hi"}]


def test_unknown_fields_are_ignored() -> None:
    form = read_form(GenerateForm, {"inputs": "x", "priority": 1, "parameters": {"logit_bias": {}}})
    assert form.inputs == "x"


def test_without_parameters_the_engine_samples_and_with_them_it_does_not() -> None:
    assert read_form(GenerateForm, {"inputs": "x"}).parameters.samples
    assert not read_form(GenerateForm, {"inputs": "x", "parameters": {}}).parameters.samples
    assert read_form(GenerateForm, {"inputs": "x", "parameters": {"temperature": 0.5}}).parameters.samples


@pytest.mark.parametrize(
    ("form", "body", "complaint"),
    [
        (GenerateForm, {}, "missing field `inputs`"),
        (GenerateForm, [], "valid dictionary"),
        (GenerateForm, {"inputs": 3}, "inputs"),
        (GenerateForm, {"inputs": None}, "inputs"),
        (GenerateForm, {"inputs": "x", "parameters": None}, "parameters"),
        (GenerateForm, {"inputs": "x", "parameters": {"max_new_tokens": -1}}, "parameters.max_new_tokens"),
        (GenerateForm, {"inputs": "x", "parameters": {"max_new_tokens": 1.5}}, "parameters.max_new_tokens"),
        (GenerateForm, {"inputs": "x", "parameters": {"max_new_tokens": True}}, "parameters.max_new_tokens"),
        (GenerateForm, {"inputs": "x", "parameters": {"max_new_tokens": 2**32}}, "parameters.max_new_tokens"),
        (GenerateForm, {"inputs": "x", "parameters": {"stop": "a"}}, "parameters.stop"),
        (GenerateForm, {"inputs": "x", "parameters": {"do_sample": None}}, "parameters.do_sample"),
        (GenerateForm, {"inputs": "x", "stream": "yes"}, "stream"),
        (ChatForm, {}, "missing field `messages`"),
        (ChatForm, {"messages": MESSAGES, "stop": "a"}, "stop"),
        (ChatForm, {"messages": MESSAGES, "max_tokens": "5"}, "max_tokens"),
        (ChatForm, {"messages": MESSAGES, "stream_options": None}, "stream_options"),
        (CompletionForm, {"prompt": []}, "prompt"),
        (CompletionForm, {"prompt": [1, 2]}, "prompt"),
        (CompletionForm, {"prompt": None}, "prompt"),
    ],
)
def test_what_serde_refuses_is_refused_with_its_place(form: type[Form], body: Any, complaint: str) -> None:
    with pytest.raises(FormError, match=complaint):
        read_form(form, body)


def test_null_stands_for_absent_where_the_router_takes_it() -> None:
    form = read_form(GenerateForm, {"inputs": "x", "parameters": {"max_new_tokens": None, "seed": None}})
    assert form.parameters.max_new_tokens is None


def test_the_newer_name_of_the_ceiling_is_taken_alone_only() -> None:
    newer = read_form(ChatForm, {"messages": MESSAGES, "max_completion_tokens": 7})
    assert newer.with_newer_ceiling().max_tokens == 7
    both = read_form(ChatForm, {"messages": MESSAGES, "max_completion_tokens": 7, "max_tokens": 7})
    with pytest.raises(FormError, match="duplicate field `max_tokens`"):
        both.with_newer_ceiling()
