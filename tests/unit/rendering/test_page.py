"""The page is read back by a parser: its parts, its order, and that nothing from outside becomes markup."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from llmshed.rendering.page import Figure, Page, Section, Table, render_page
from llmshed.rendering.plots import Caption, curve

TABLE = Table("Results", ("policy", "goodput"), (("ours", "10.0"), ("none", "0.4")), note="Requests a second.")
DRAWING = curve(Caption("goodput", "Goodput", "Flat.", "x", "y"), {"ours": [(1, 1), (2, 1)]})
PAGE = Page(
    title="What if",
    summary=("Ours stays flat.",),
    facts=(("trace", "azure.csv"), ("seed", "0")),
    sections=(Section("At 2x", ("A sentence.",), (Figure(DRAWING, "Below the drawing."),), (TABLE,)),),
    foot="llmshed 0.1.0",
)
VOID = {"meta", "link", "br", "img", "input", "hr"}
LOADS = {"src", "href", "xlink:href", "action", "data", "poster", "srcset", "background"}


class Outline(HTMLParser):
    """Every element with its attributes, and the text of those that hold any; an unbalanced end tag fails."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open:
            self.texts.append((self.open[-1], data.strip()))

    def of(self, tag: str) -> list[str]:
        return [text for element, text in self.texts if element == tag]


def test_a_page_holds_its_parts_in_order() -> None:
    outline = Outline(render_page(PAGE))
    assert outline.of("h1") == ["What if"]
    assert (outline.of("dt"), outline.of("dd")) == (["trace", "seed"], ["azure.csv", "0"])
    assert outline.of("h2") == ["At 2x"]
    assert outline.of("p") == ["Ours stays flat.", "A sentence.", "Requests a second."]
    assert outline.of("th") == ["policy", "goodput", "ours", "none"]
    assert outline.of("td") == ["10.0", "0.4"]
    assert outline.of("figcaption") == ["Below the drawing."]
    assert outline.of("footer") == ["llmshed 0.1.0"]


def test_the_page_is_well_formed_to_the_last_element() -> None:
    body = re.sub(r"<!DOCTYPE html>|<meta[^>]*>", "", render_page(PAGE))
    assert ET.fromstring(body).tag == "html"  # noqa: S314 - our own page


def test_nothing_is_loaded_and_the_page_forbids_it_to_itself() -> None:
    page = render_page(PAGE)
    outline = Outline(page)
    loaded = [value for _, attrs in outline.elements for name, value in attrs.items() if name in LOADS]
    assert [value for value in loaded if not (value or "").startswith("#")] == []
    assert not {tag for tag, _ in outline.elements} & {"script", "link", "img", "iframe", "object", "embed", "base"}
    assert not re.search(r"@import|url\((?!#)", page)
    policies = [attrs["content"] for tag, attrs in outline.elements if attrs.get("http-equiv")]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_identifiers_are_unique() -> None:
    second = Section("At 5x", figures=(Figure(DRAWING.replace("goodput-", "other-"), ""),), tables=(TABLE,))
    outline = Outline(render_page(replace(PAGE, sections=(*PAGE.sections, second))))
    named = [attrs["id"] for _, attrs in outline.elements if "id" in attrs]
    assert len(named) > 2
    assert len(named) == len(set(named))


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "&lt;b&gt;", "'--x"]
)
def test_text_from_outside_is_shown_and_never_becomes_markup(text: str) -> None:
    table = Table(text, (text, text), ((text, text),), note=text)
    page = Page(text, (text,), ((text, text),), (Section(text, (text,), (Figure(DRAWING, text),), (table,)),), text)
    outline, plain = Outline(render_page(page)), Outline(render_page(PAGE))
    assert {tag for tag, _ in outline.elements} <= {tag for tag, _ in plain.elements}
    assert not [name for _, attrs in outline.elements for name in attrs if name.startswith("on")]
    for tag in ("title", "h1", "h2", "dt", "dd", "td", "caption", "figcaption", "footer"):
        assert text in outline.of(tag)


def test_names_that_no_page_can_hold_are_replaced() -> None:
    shown = Outline(render_page(replace(PAGE, title="a\x00b\udc80\x1b[0m\u202e"))).of("h1")
    assert shown == ["a\ufffdb\ufffd\ufffd[0m\ufffd"]


def test_a_page_without_sections_is_a_page() -> None:
    assert Outline(render_page(Page("Empty", (), (), ()))).of("h1") == ["Empty"]


def test_the_same_values_give_the_same_bytes() -> None:
    assert render_page(PAGE) == render_page(PAGE)
