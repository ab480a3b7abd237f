import pytest

from llmshed.rendering.plain import readable


@pytest.mark.parametrize("text", ["azure conv.csv", "Übung 日本 🙂", "a\u00a0b"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert readable(text) == text


@pytest.mark.parametrize(
    "mark",
    ["\x00", "\x1b", "\n", "\x7f", "\x9b", "\udc80", "\ufffe", "\u202e", "\u2066"],
    ids=["nul", "escape", "newline", "delete", "terminal control", "no UTF-8", "no character", "turned", "isolated"],
)
def test_what_would_break_a_page_a_terminal_or_a_line_is_replaced(mark: str) -> None:
    assert readable(f"a{mark}b") == "a\ufffdb"
