"""Bytes to lines, whatever the bytes."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.errors import TraceError
from llmshed.workload.readers.lines import (
    LONGEST_LINE_BYTES,
    LONGEST_WHOLE_BYTES,
    beginning,
    numbered_lines,
    shown,
    whole_text,
)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\nb\n", [(1, "a"), (2, "b")]),
        (b"a\r\nb", [(1, "a"), (2, "b")]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", [(1, "a"), (2, "\ufeffb")]),
        (b"\n \t\na\n\n", [(3, "a")]),
        (b"", []),
        ("é\n".encode(), [(1, "é")]),
    ],
    ids=["LF", "CRLF and no last end", "byte order mark", "blank lines", "empty", "UTF-8"],
)
def test_lines_are_numbered_as_an_editor_does(content: bytes, lines: list[tuple[int, str]]) -> None:
    assert list(numbered_lines([content])) == lines


@given(st.lists(st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]))), st.integers(1, 7))
def test_pieces_of_any_size_give_the_same_lines(texts: list[str], size: int) -> None:
    content = "\n".join(texts).encode()
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    assert list(numbered_lines(pieces)) == list(numbered_lines([content]))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a\nb\0c\n", "line 2: holds a NUL byte"),
        ("TIMESTAMP".encode("utf-16"), "line 1: holds a NUL byte"),
        (b"a\n\xff\xfe\n", r"line 2: byte 1 is not UTF-8"),
        (b"\x1f\x8b\x08", r"line 1: byte 2 is not UTF-8 \(b'\\x1f\\x8b"),
        (b"a\n" + b"x" * (LONGEST_LINE_BYTES + 1), "line 2: longer than 1048576 bytes"),
    ],
    ids=["NUL", "UTF-16", "no UTF-8", "still packed", "huge line"],
)
def test_what_is_no_text_is_told(content: bytes, told: str) -> None:
    with pytest.raises(TraceError, match=told):
        list(numbered_lines([content]))


def test_an_endless_line_is_given_up_early() -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 65_536
            yield b"x" * 65_536

    with pytest.raises(TraceError, match="longer than"):
        list(numbered_lines(endless()))
    assert taken <= LONGEST_LINE_BYTES + 65_536


def test_the_beginning_is_the_first_line_that_is_not_blank() -> None:
    assert beginning([b"\xef\xbb", b"\xbf\n\n", b"  first", b" line\r\nsecond"]) == "first line"
    assert beginning([b"\xff"]) == "\ufffd"
    assert beginning([]) == ""


def test_a_whole_file_is_bounded() -> None:
    assert whole_text([b"\xef\xbb\xbf{", b"}"]) == "{}"
    piece = bytes(1 << 24)
    with pytest.raises(TraceError, match=f"longer than {LONGEST_WHOLE_BYTES} bytes"):
        whole_text(piece for _ in range(100))
    with pytest.raises(TraceError, match=r"^byte 1 is not UTF-8"):
        whole_text([b"\xff"])


@pytest.mark.parametrize("found", ["x" * 1000, "\n\0\x1b[31m", ["x"] * 1000, None, "ü"])
def test_what_was_found_is_shown_short_and_on_one_line(found: object) -> None:
    assert len(shown(found)) <= 60
    assert shown(found).isprintable()
