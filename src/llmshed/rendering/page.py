"""One page of HTML from values: it stands alone in a file, loads nothing, and reads well without its drawings.

The page's own policy (Content-Security-Policy) forbids every load, so that this would hold even if a name from outside
could become markup. None can: jinja2 escapes every value but the drawings, which `llmshed.rendering.plots` wrote.
"""

from dataclasses import dataclass
from functools import cache

import jinja2
from markupsafe import Markup

from llmshed.rendering.plain import readable


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns; the first column names the rows.

    Args:
        caption: what is shown, in one line.
        columns: names of the columns.
        rows: as many cells each as there are columns.
        note: what a reader should know of the figures; empty for nothing.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing and the words below it; `svg` goes into the page as it is, so it comes from `rendering.plots`."""

    svg: str
    words: str


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under one heading: sentences, then drawings, then tables."""

    heading: str
    sentences: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page.

    Args:
        title: what it is about; also the document's name.
        summary: the result in a few sentences.
        facts: what the result rests on, by name.
        sections: the rest, in order.
        foot: one line at the end.
    """

    title: str
    summary: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    foot: str = ""


def render_page(page: Page) -> str:
    """Return the page as one HTML document; the same values give the same bytes."""
    return _template().render(page=page)


@cache
def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader("llmshed.rendering", "templates")
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: readable(value) if type(value) is str else value,
    )
    # The one way past the escaping, for text that is SVG by construction.
    environment.filters["drawing"] = Markup
    return environment.get_template("page.html")
