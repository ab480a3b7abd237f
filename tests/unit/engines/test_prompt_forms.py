"""A text completion's prompt, in every form that OpenAI's clients send."""

from typing import Any

import pytest

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.engines.prompt_forms import MAX_PROMPTS, read_prompts
from llmshed.tokenizing.prompts import IdsPrompt, Prompt, TextPrompt


def read(value: Any, *, takes_token_ids: bool = True) -> tuple[Prompt, ...]:
    return read_prompts(value, "prompt", takes_token_ids=takes_token_ids, engine="TGI")


@pytest.mark.parametrize(
    ("value", "prompts"),
    [
        ("a", (TextPrompt("a"),)),
        (" ", (TextPrompt(" "),)),
        (["a"], (TextPrompt("a"),)),
        (["a", "b", "a"], (TextPrompt("a"), TextPrompt("b"), TextPrompt("a"))),
        ([1, 2, 0], (IdsPrompt((1, 2, 0)),)),
        ([[1], [2, 3]], (IdsPrompt((1,)), IdsPrompt((2, 3)))),
    ],
)
def test_a_prompt_is_as_many_prompts_as_it_holds(value: object, prompts: tuple[Prompt, ...]) -> None:
    assert read(value) == prompts


@pytest.mark.parametrize(
    "value",
    ["", [], [""], ["a", ""], ["a", 1], [1, "a"], [1, [1]], [[]], [[1], []], [True], [-1], [1.0], [2**31], {}, 1],
)
def test_what_is_no_form_of_a_prompt_is_malformed(value: object) -> None:
    with pytest.raises(BodyError) as caught:
        read(value)
    assert caught.value.reason is Reason.MALFORMED
    assert caught.value.param == "prompt"


@pytest.mark.parametrize("value", [[1, 2], [[1, 2]], [0]])
def test_token_ids_are_understood_and_refused_for_an_engine_that_takes_text_only(value: object) -> None:
    with pytest.raises(BodyError) as caught:
        read(value, takes_token_ids=False)
    assert caught.value.reason is Reason.UNSUPPORTED_FIELD
    assert str(caught.value) == "`prompt` holds token ids, which TGI does not take; send the text"


def test_a_request_holds_a_bounded_number_of_prompts() -> None:
    assert len(read(["a"] * MAX_PROMPTS)) == MAX_PROMPTS
    with pytest.raises(BodyError, match="1,025 prompts; a request may hold 1,024"):
        read(["a"] * (MAX_PROMPTS + 1))
