"""Images in prompts: found as TGI finds them, and never counted as text."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.engines.tgi.images import count_images
from llmshed.tokenizing.prompts import ChatPrompt, IdsPrompt, TextPrompt

MARK = re.compile(r"!\[\]\([^\)]*\)")  # as TGI's router has it
URL = "data:image/png;base64,iVBORw0KGgo="


def chat(*contents: Any) -> ChatPrompt:
    return ChatPrompt([{"role": "user", "content": content} for content in contents])


def part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


@pytest.mark.parametrize(
    ("prompt", "images"),
    [
        ("no image", 0),
        (f"a ![]({URL}) b", 1),
        (f"![]({URL})![](http://a/b.png)", 2),
        ("![](a) ![](b", 1),
        ("![](a ![](b) c)", 1),
        ("![alt](http://a/b.png) ! []() ![] ()", 0),
        ("![]()", 1),
        ("![](a\nb)", 1),
    ],
)
def test_marks_of_plain_text_are_images(prompt: str, images: int) -> None:
    assert count_images(TextPrompt(prompt)) == images


@given(st.lists(st.sampled_from(["![](", ")", "!", "[", "]", "(", "a", "\n"])).map("".join))
def test_marks_are_those_of_tgis_own_pattern(prompt: str) -> None:
    assert count_images(TextPrompt(prompt)) == len(MARK.findall(prompt))


def test_image_parts_of_a_chat_are_images() -> None:
    assert (
        count_images(chat([text("what is "), part(URL), text("?")], "nothing", [part(URL), part("https://a/b.png")]))
        == 3
    )


@pytest.mark.parametrize(
    ("contents", "images"),
    [
        (([text("![](http://a"), text(")")],), 1),
        (([text("!["), text("](http://a)")],), 1),
        (("![](http://a", "later)"), 1),
        (("![](a) ![](b",), 2),
    ],
)
def test_a_mark_put_together_from_pieces_of_a_chat_is_found(contents: tuple[Any, ...], images: int) -> None:
    assert count_images(chat(*contents)) == images


def test_marks_in_tools_and_tool_calls_are_found_since_they_are_written_into_the_prompt() -> None:
    function = {"name": "f", "description": f"![]({URL})", "parameters": {}}
    call = {"id": "0", "type": "function", "function": {"name": "f", "arguments": {"a": f"![]({URL})"}}}
    prompt = ChatPrompt(
        [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [call]}],
        tools=[{"type": "function", "function": function}],
        tool_prompt=f"![]({URL})",
    )
    assert count_images(prompt) == 3


def test_a_prompt_of_ids_has_no_images() -> None:
    assert count_images(IdsPrompt((1, 2))) == 0


def test_a_megabyte_of_marks_that_nothing_closes_is_searched_once() -> None:
    # Quadratic search would run for minutes; the timeout of every test is the bound here.
    prompt = "![](" * 500_000
    assert count_images(TextPrompt(prompt)) == 0
    assert count_images(chat(prompt)) == 1
