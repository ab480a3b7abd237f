"""The spellings of a setting's path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.config.paths import from_variable, overlap, parsed, spelled, variable

names = st.from_regex(r"[a-z]+(_[a-z]+)*", fullmatch=True)
paths = st.lists(names, min_size=1, max_size=3).flatmap(
    lambda first: st.lists(st.one_of(names, st.integers(0, 99)), max_size=3).map(lambda rest: (*first, *rest))
)


@given(paths)
def test_a_path_is_read_back_from_both_of_its_spellings(path: tuple[str | int, ...]) -> None:
    assert parsed(spelled(path)) == path
    assert from_variable(variable(path)) == path


def test_the_spellings() -> None:
    path = ("pools", 0, "replicas", 1, "url")

    assert spelled(path) == "pools[0].replicas[1].url"
    assert variable(path) == "LLMSHED_POOLS__0__REPLICAS__1__URL"


def test_a_name_that_toml_quotes_is_quoted() -> None:
    assert spelled(("server", 'a b"\n\x1b')) == 'server."a b\\"\\n\\u001b"'


@pytest.mark.parametrize("text", ["", ".a", "a.", "a..b", "a[", "a[x]", "a]", "a b", "a[1", "a[1]b", "a=1"])
def test_other_texts_are_no_paths(text: str) -> None:
    assert parsed(text) is None


def test_paths_overlap_when_one_stands_inside_the_other() -> None:
    assert overlap(("a",), ("a", 0, "b"))
    assert overlap(("a", 0, "b"), ("a",))
    assert not overlap(("a", 0), ("a", 1))
