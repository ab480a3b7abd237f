"""Comma-separated lines with a header."""

import pytest

from llmshed.errors import TraceError
from llmshed.workload.readers.table import table_rows


def rows(text: str) -> list[tuple[int, list[str]]]:
    return list(table_rows([text.encode()], ("a", "b"), ("c",)))


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("a,b,c\n1,2,3\n", ["1", "2", "3"]),
        ("b,x,a\n1,2,3\n", ["3", "1", ""]),
        ('"a", b ,c\n"1,5",2,3\n', ["1,5", "2", "3"]),
        ('a,b\n"say ""hi""",2\n', ['say "hi"', "2", ""]),
        ("\ufeffa,b\r\n1,2\r\n", ["1", "2", ""]),
        ("x,x,a,b\n0,0,1,2\n", ["1", "2", ""]),
    ],
    ids=["in order", "in another order", "quoted", "quotes in quotes", "as Windows writes", "others twice"],
)
def test_fields_come_in_the_order_asked_for(text: str, fields: list[str]) -> None:
    assert rows(text) == [(2, fields)]


def test_a_header_alone_is_a_table_without_rows() -> None:
    assert rows("a,b\n") == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "^the trace is empty; a header with a, b comes first"),
        ("\n\n", "^the trace is empty"),
        ("a,x\n", "^line 1: no column b in the header 'a,x'"),
        ("A,B\n", "^line 1: no column a, b"),
        ("1,2\n", "^line 1: no column a, b"),
        ("a,b,a\n", "^line 1: the header has a more than once"),
        ("a,b,c,c\n", "^line 1: the header has c more than once"),
        ("a,b\n1\n", "^line 2: 1 fields; the header has 2: '1'"),
        ("a,b\n1,2\n\n1,2,3\n", "^line 4: 3 fields"),
        ('a,b\n"1,2\n3",4\n', "^line 2: not comma-separated"),
        ('a,b\n"1"x,2\n', "^line 2: not comma-separated"),
        ('a,b\n"' + "x" * 200_000 + '",2\n', "^line 2: not comma-separated"),
        ('"a,b\n', "^line 1: not comma-separated"),
    ],
)
def test_a_broken_table_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(TraceError, match=told) as caught:
        rows(text)
    assert len(str(caught.value)) < 200
