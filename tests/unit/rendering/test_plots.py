"""Drawings are read back as XML: what a page or a reader's program sees of them."""

import builtins
import math
import re
import sys
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from llmshed.errors import ExitCode
from llmshed.rendering.plots import Caption, MissingPlotsError, Points, bars, curve

CAPTION = Caption("goodput", "Goodput", "Ours stays flat, none falls.", "times the trace's rate", "good requests/s")
LINES: Mapping[str, Points] = {
    "ours": [(1, 10), (2, 10), (5, 9.9), (10, 9.8)],
    "none": [(1, 10), (2, 4), (5, 1), (10, 0.4)],
}
ROWS = {"ours at 2x": {"queue_full": 5.0, "token_budget_exhausted": 3.0}, "none at 2x": {"engine_overloaded": 30.0}}
NAMESPACE = "{http://www.w3.org/2000/svg}"


def read(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - our own drawing


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in read(svg).iter(f"{NAMESPACE}text")]


def attributes(svg: str) -> list[tuple[str, str]]:
    return [pair for element in read(svg).iter() for pair in element.attrib.items()]


@pytest.fixture(scope="module")
def lines() -> str:
    return curve(CAPTION, LINES, "log")


@pytest.fixture(scope="module")
def stacked() -> str:
    return bars(CAPTION, ROWS)


@pytest.fixture(scope="module", params=["lines", "stacked"])
def svg(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


class TestEveryDrawing:
    def test_has_a_title_and_a_description_that_it_is_labelled_by(self, svg: str) -> None:
        root = read(svg)
        words = {element.attrib["id"]: element.text for element in root if element.tag[len(NAMESPACE) :] in TITLES}
        assert root.attrib["role"] == "img"
        assert [words[name] for name in root.attrib["aria-labelledby"].split()] == [
            "Goodput",
            "Ours stays flat, none falls.",
        ]

    def test_refers_to_nothing_but_its_own_parts(self, svg: str) -> None:
        own = [value for key, value in attributes(svg) if key == "id"]
        assert len(own) == len(set(own))
        referred = re.findall(r"url\(#([^)]+)\)", svg) + [
            v.removeprefix("#") for k, v in attributes(svg) if "href" in k
        ]
        assert referred
        assert set(referred) <= set(own)
        assert "http" not in svg.replace("http://www.w3.org/2000/svg", "", 1)

    def test_has_identifiers_that_begin_with_its_name(self, svg: str) -> None:
        assert all(value.startswith("goodput-") for key, value in attributes(svg) if key == "id")

    def test_has_no_colour_that_cannot_follow_a_dark_page(self, svg: str) -> None:
        styled = " ".join(value for key, value in attributes(svg) if key in {"style", "fill", "stroke"})
        assert "var(--ink" in styled
        assert not re.findall(r"#\w{3,6}", re.sub(r"var\(--[\w-]+, #\w{6}\)|url\(#[\w-]+\)", "", styled))
        assert "prefers-color-scheme:dark" in svg

    def test_holds_no_date_and_no_rules_for_the_page_around_it(self, svg: str) -> None:
        assert not re.search(r"20\d\d-\d\d-\d\d|metadata|\*\s*{", svg)


TITLES = {"title", "desc"}


def test_the_same_values_give_the_same_bytes(lines: str, stacked: str) -> None:
    assert curve(CAPTION, LINES, "log") == lines
    assert bars(CAPTION, ROWS) == stacked


def test_lines_differ_without_their_colours(lines: str) -> None:
    drawn = [value for key, value in attributes(lines) if key == "style" and "stroke-width: 1.6" in value]
    dashes = [re.sub(r"var\([^)]*\)", "", style) for style in drawn]
    assert len(set(dashes)) == len(LINES)


def test_every_series_and_axis_is_named(lines: str, stacked: str) -> None:
    assert {"ours", "none", "times the trace's rate", "good requests/s"} <= set(texts(lines))
    assert {"queue_full", "engine_overloaded", "ours at 2x", "none at 2x"} <= set(texts(stacked))


def test_a_logarithmic_axis_is_marked_where_there_are_points(lines: str) -> None:
    assert [text for text in texts(lines) if re.fullmatch(r"[\d.]+", text)][:4] == ["1", "2", "5", "10"]


def test_a_logarithmic_axis_with_many_points_is_marked_in_plain_numbers() -> None:
    wide = curve(CAPTION, {"ours": [(10 ** (place / 4), 1) for place in range(-8, 9)]}, "log")
    assert {"0.01", "1", "100"} <= set(texts(wide))
    assert not [text for text in texts(wide) if "$" in text]


def test_one_series_needs_no_legend() -> None:
    assert "ours" not in texts(curve(CAPTION, {"ours": LINES["ours"]}))


@pytest.mark.parametrize("label", ["_hidden", "$x$", "<script>", "a & b", "日本", "\x00\x1b[31m", "x\udc80"])
def test_a_label_is_shown_as_it_is_and_never_as_markup(label: str) -> None:
    svg = curve(CAPTION, {label: [(1, 1)], "ours": [(1, 2)]})
    shown = [text.strip() for text in texts(svg)]
    assert re.sub(r"[\x00\x1b\udc80]", "\ufffd", label) in shown
    assert label in shown or not label.isprintable()


@pytest.mark.parametrize(
    "series",
    [{}, {"ours": []}, {"ours": [(1, math.nan), (2, math.inf)]}, {"ours": [(0, 1), (-1, 2), (math.nan, 3)]}],
    ids=["no series", "no points", "no finite height", "nothing on the axis"],
)
@pytest.mark.parametrize("axis", ["linear", "log"])
def test_points_that_cannot_be_drawn_leave_a_drawing_without_them(series: Mapping[str, Points], axis: Any) -> None:
    assert not re.search(r"\b(nan|inf)\b", curve(CAPTION, series, axis))


@pytest.mark.parametrize("rows", [{}, {"ours": {}}, {"ours": {"queue_full": 0.0}}])
def test_bars_of_nothing_are_drawn_too(rows: Mapping[str, Mapping[str, float]]) -> None:
    assert read(bars(CAPTION, rows)).attrib["role"] == "img"


def test_more_series_than_colours_are_all_named() -> None:
    many = {f"policy {number}": [(1.0, float(number))] for number in range(20)}
    assert set(many) <= set(texts(curve(CAPTION, many)))


def test_without_matplotlib_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def missing(name: str, *arguments: Any, **options: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return found(name, *arguments, **options)

    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingPlotsError, match=r"pip install 'llmshed\[plots\]'") as told:
        curve(CAPTION, LINES)
    assert told.value.exit_code is ExitCode.UNAVAILABLE
