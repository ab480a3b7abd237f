"""Text from outside, made safe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.observability.text import header_text, one_line


@given(st.text(), st.integers(min_value=0, max_value=50))
def test_one_line_is_printable_bounded_and_can_be_encoded(text: str, max_chars: int) -> None:
    shown = one_line(text, max_chars)
    assert len(shown) <= max_chars
    assert shown.isprintable()
    shown.encode()


@pytest.mark.parametrize("text", ["plain", "Straße, 東京", 'a `b` "c" {d}'])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert one_line(text) == text


@given(st.text())
def test_header_text_is_printable_ascii_without_outer_spaces(text: str) -> None:
    value = header_text(text)
    assert value.isascii()
    assert value.isprintable()
    assert value == value.strip()


def test_header_text_marks_what_it_cannot_tell() -> None:
    assert header_text("mödel\r\nx: y") == "m?del??x: y"
