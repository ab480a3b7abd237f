"""What settings accept, in words."""

import datetime as dt
from typing import Annotated, Literal

import pytest
from pydantic import Field

from llmshed.config.base import FilePath, Name, Ratio, Seconds, Settings
from llmshed.config.catalogue import Catalogue, listed


class Inner(Settings):
    name: Name
    size: Annotated[int, Field(ge=1, le=64)] = 2


class Sample(Settings):
    text: str = ""
    day: dt.date | None = None
    flag: bool = False
    mode: Literal["on", "off", "auto"] = "on"
    only: Literal["tgi"] = "tgi"
    wait_seconds: Seconds = 1.0
    share_ratio: Ratio | None = None
    file: FilePath | None = None
    modes: Annotated[tuple[Literal["on", "off"], ...], Field(min_length=1)] = ("on",)
    inner: Inner | None = None
    inners: tuple[Inner, ...] = ()


catalogue = Catalogue(Sample)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (("text",), "text in quotes"),
        (("day",), "a date without quotes, as in 2026-11-30"),
        (("flag",), "true or false"),
        (("mode",), '"on", "off" or "auto"'),
        (("only",), '"tgi"'),
        (("wait_seconds",), "a number, above 0 and at most 1_000_000_000"),
        (("share_ratio",), "a number, at least 0 and below 1"),
        (("modes",), 'a list of at least 1, each "on" or "off"'),
        (("modes", 3), '"on" or "off"'),
        (("inner",), "a table with at least `name`"),
        (("inners",), "a list, each a table with at least `name`"),
        (("inners", 7, "size"), "a whole number, at least 1 and at most 64"),
    ],
)
def test_words_for_what_is_accepted(path: tuple[str | int, ...], words: str) -> None:
    assert catalogue.accepted(path) == words


def test_a_type_may_have_words_of_its_own() -> None:
    assert "a-z" in catalogue.accepted(("inner", "name"))
    assert "path of a file" in catalogue.accepted(("file",))


def test_leaves_are_the_settings_that_hold_values() -> None:
    assert {path for path in catalogue.leaves() if path[0] in {"inner", "inners", "modes"}} == {
        ("inner", "name"),
        ("inner", "size"),
        ("inners", 0, "name"),
        ("inners", 0, "size"),
        ("modes",),
    }


@pytest.mark.parametrize("path", [("nope",), ("text", "x"), ("text", 0), ("inners", "name"), ("inner", 0)])
def test_what_does_not_exist_is_not_found(path: tuple[str | int, ...]) -> None:
    assert catalogue.find(path) is None


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        (("flagg",), ("flag",)),
        (("inners", 4, "nam"), ("inners", 4, "name")),
        (("inner", "wait_seconds"), ("wait_seconds",)),
        (("quite", "different"), None),
    ],
)
def test_the_nearest_setting(path: tuple[str | int, ...], meant: tuple[str | int, ...] | None) -> None:
    assert catalogue.nearest(path) == meant


def test_only_strings_take_numbers_as_text() -> None:
    assert catalogue.takes_only_text(("text",))
    assert catalogue.takes_only_text(("file",))
    assert not catalogue.takes_only_text(("day",))
    assert not catalogue.takes_only_text(("wait_seconds",))


def test_lists_of_words_read_as_a_sentence() -> None:
    assert listed([], "or") == ""
    assert listed(["a"], "or") == "a"
    assert listed(["a", "b", "c"], "or") == "a, b or c"
