import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.tokenizing.images import cut_at_images, image_parts
from llmshed.tokenizing.prompts import ChatPrompt

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
        ("![](data:;base64,AA)", 0),
        (None, 0),
        ([{"type": "text", "text": "a ![](http://x) b"}, {"type": "image_url", "image_url": {"url": "http://y"}}], 1),
        ([{"type": "image"}, {"type": "input_image"}, {"type": ["image"]}, "image", {"text": 5}], 2),
    ],
)
def test_image_parts_of_messages_are_counted_and_marks_in_text_are_not(content: object, images: int) -> None:
    assert image_parts(ChatPrompt([{"role": "user", "content": content}, {"role": "user"}])) == images
