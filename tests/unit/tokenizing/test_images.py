import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.tokenizing.images import cut_at_images, image_count, image_parts
from llmshed.tokenizing.prompts import ChatPrompt, IdsPrompt, TextPrompt

# The router's own expression; Python's re reads it as Rust's regex does, only not in linear time.
ROUTER = re.compile(r"!\[\]\([^\)]*\)")


@given(st.text(st.sampled_from("![]()a\n"), max_size=60))
def test_text_is_cut_where_the_routers_expression_finds_images(text: str) -> None:
    texts, images = cut_at_images(text)
    assert texts == ROUTER.split(text)
    assert images == len(ROUTER.findall(text))


def test_a_text_of_nothing_but_openings_is_cut_in_linear_time() -> None:
    # Quadratic search would look at 5e11 characters here, and not end within the time that a test has.
    assert cut_at_images("![](" * 500_000).images == 0
    assert cut_at_images("![](" * 500_000 + ")").images == 1


@pytest.mark.parametrize(
    ("content", "images"),
    [
        ("text", 0),
        (None, 0),
        ("![](data:;base64,AA)", 1),
        ([{"type": "text", "text": "a ![](http://x) b"}, {"type": "image_url", "image_url": {"url": "http://y"}}], 2),
        ([{"type": "image"}, {"type": "input_image"}, {"type": ["image"]}, "image", {"text": 5}], 2),
    ],
)
def test_images_of_a_message_are_counted(content: object, images: int) -> None:
    assert image_count(ChatPrompt([{"role": "user", "content": content}, {"role": "user"}])) == images


def test_parts_are_told_apart_from_marks_in_text() -> None:
    marked = ChatPrompt([{"role": "user", "content": "![](http://x)"}])
    assert (image_count(marked), image_parts(marked)) == (1, 0)


def test_images_of_plain_prompts_are_counted() -> None:
    assert image_count(TextPrompt("![](a)![](b) ![alt](c)")) == 2
    assert image_count(IdsPrompt((1, 2))) == 0
