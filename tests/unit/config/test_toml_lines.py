"""Where the keys of a TOML text stand."""

import textwrap
from typing import Any

import pytest
import tomli
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from llmshed.config.toml_lines import key_lines


def lines_of(text: str) -> dict[Any, int]:
    text = textwrap.dedent(text)
    tomli.loads(text)
    return dict(key_lines(text))


def test_tables_and_their_keys() -> None:
    assert lines_of("""\
        # a comment with [brackets] = and "quotes

        [server]
        listen = "127.0.0.1:1" # "]"
        [ log . deep ]
        level = 'info'
        """) == {
        ("server",): 3,
        ("server", "listen"): 4,
        ("log",): 5,
        ("log", "deep"): 5,
        ("log", "deep", "level"): 6,
    }


def test_arrays_of_tables_count_inside_the_last_one_opened() -> None:
    lines = lines_of("""\
        [[pools]]
        name = "a"
        [[pools.replicas]]
        name = "r1"
        [[pools.replicas]]
        name = "r2"
        [[pools]]
        [[pools.replicas]]
        url = "x"
        [pools.extra]
        key = 1
        """)

    assert lines["pools", 0, "replicas", 1, "name"] == 6
    assert lines["pools", 1] == 7
    assert lines["pools", 1, "replicas", 0, "url"] == 9
    assert lines["pools", 1, "extra", "key"] == 11


def test_dotted_and_quoted_keys() -> None:
    lines = lines_of("""\
        a.b . "c.d".'e' = 1
        a.b.f = 2
        "\\u0067" = 3
        1234.5 = 6
        """)

    assert lines["a", "b", "c.d", "e"] == 1
    assert lines["a", "b", "f"] == 2
    assert lines["g",] == 3
    assert lines["1234", "5"] == 4


def test_inline_tables_and_nested_arrays_over_several_lines() -> None:
    lines = lines_of("""\
        pools = [ # first
          { name = "a", replicas = [
            { name = "r1" }, # one
            { name = "r2", tags.x = [1, [2, 3]] },
          ] },
          { name = "b" }
        ]
        after = 1
        """)

    assert lines["pools", 0, "name"] == 2
    assert lines["pools", 0, "replicas", 1, "name"] == 4
    assert lines["pools", 0, "replicas", 1, "tags", "x", 1, 1] == 4
    assert lines["pools", 1, "name"] == 6
    assert lines["after",] == 8


@pytest.mark.parametrize(
    "value",
    [
        '"""\none\n[two]\nthree = 3\n"""',
        "'''\none\n[two]\nthree = '4'\n'''",
        '"""\none\\\n   \\"""\nstill = 1\n x"""""',
        "'''\n\none\ntwo'''''",
    ],
)
def test_strings_over_several_lines_hide_what_stands_in_them(value: str) -> None:
    text = f"first = {value}\nlast = 1\n"
    tomli.loads(text)

    assert key_lines(text) == {("first",): 1, ("last",): value.count("\n") + 2}


def test_windows_line_ends_and_dates_with_a_space() -> None:
    assert key_lines("a = 1\r\n# c\r\nb = 1979-05-27 07:32:00\r\nc = -1.5e3\r\n") == {("a",): 1, ("b",): 3, ("c",): 4}


scalars = st.one_of(st.text(max_size=12), st.integers(-(2**40), 2**40), st.booleans(), st.floats(allow_nan=False))
documents = st.dictionaries(
    st.text(max_size=6),
    st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)),
        max_leaves=12,
    ),
    max_size=5,
)


@given(documents, st.booleans())
def test_every_path_of_a_document_has_a_line_and_no_other_has(document: dict[str, Any], multiline: bool) -> None:  # noqa: FBT001 - drawn by hypothesis
    text = tomli_w.dumps(document, multiline_strings=multiline)
    count = text.count("\n") + 1

    lines = key_lines(text)

    assert set(lines) == set(paths_of(tomli.loads(text)))
    assert all(1 <= line <= count for line in lines.values())


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=20)), unique_by=lambda pair: pair[0], max_size=6))
def test_a_key_stands_on_the_line_that_reading_up_to_it_says(pairs: list[tuple[str, str]]) -> None:
    text, expected = "", {}
    for key, value in pairs:
        expected[key,] = text.count("\n") + 1
        text += tomli_w.dumps({key: value}, multiline_strings=True)

    assert key_lines(text) == expected


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [] if path == () else [path]
    for key, element in inner:
        found += paths_of(element, (*path, key))
    return found
