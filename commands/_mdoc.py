"""Plain text from mdoc(7), for machines without man(1) or mandoc(1): the macros that this project's pages use.

A page is read line by line. A line that begins with a dot is a macro: a block macro moves the margin or starts a
paragraph, every other is a run of inline macros that becomes words. An unknown macro's words stay in the text, so that
nothing is lost.
"""

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field

from ._mdoc_words import CLOSERS, Words, inline, tokens, unescaped

_WIDTH = 78
_INDENT = 5
_TAG_INDENT = 8
_LISTS = {"-tag": _TAG_INDENT, "-hang": _TAG_INDENT, "-ohang": 0, "-inset": 0, "-diag": _TAG_INDENT,
          "-bullet": 4, "-dash": 4, "-enum": 4, "-column": 0, "-item": 0}  # fmt: skip


def to_text(source: str) -> str:
    """Return a page as plain text of at most 78 columns."""
    page = _Page()
    for line in source.splitlines():
        page.take(line)
    page.flush()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(page.lines)).strip("\n") + "\n"


@dataclass(slots=True)
class _Page:
    """A page under way: finished lines, the words of the open paragraph, and the margin of each open list."""

    lines: list[str] = field(default_factory=list)
    words: Words = field(default_factory=Words)
    name: str = ""
    title: str = ""
    section: str = ""
    lists: list[str] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    margin: int = 0
    literal: bool = False
    bullet: str = ""

    def take(self, line: str) -> None:
        if line.startswith(('.\\"', "'\\\"")) or line == ".":
            return
        if not line.startswith("."):
            if self.literal:
                self.lines.append(" " * self.margin + unescaped(line))
            elif line.strip():
                self.words.add_text(line)
            else:
                self._paragraph()
            return
        macro, *rest = tokens(line[1:])
        if macro in _BLOCKS:
            _BLOCKS[macro](self, rest)
            return
        if macro == "Nm" and self.section == "SYNOPSIS":
            self.flush()
        self._add([macro, *rest])
        if self.literal:
            self.flush()

    def flush(self) -> None:
        """End the open paragraph."""
        text = self.words.text()
        self.words = Words()
        if text:
            start = " " * self.margin
            first = start[: -len(self.bullet)] + self.bullet if self.bullet else start
            self.lines += textwrap.wrap(
                text,
                _WIDTH,
                initial_indent=first,
                subsequent_indent=start,
                break_long_words=False,
                break_on_hyphens=False,
            )
            self.bullet = ""

    def _add(self, run: list[str]) -> None:
        if run[0] == "Nm" and len(run) > 1 and not self.name and run[1] not in CLOSERS:
            self.name = run[1]
        self.words.add(run, self.name)

    def _paragraph(self) -> None:
        self.flush()
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def date(self, _rest: list[str]) -> None:
        """The date stands in the source only."""

    def heading(self, _rest: list[str]) -> None:
        self.lines += [self.title, ""]

    def titled(self, rest: list[str]) -> None:
        self.title = f"{rest[0]}({rest[1]})" if len(rest) > 1 else " ".join(rest)

    def section_begins(self, rest: list[str]) -> None:
        self._paragraph()
        self.lists, self.counts, self.section = [], [], " ".join(rest)
        self.lines.append(unescaped(self.section))
        self.margin = _INDENT

    def subsection_begins(self, rest: list[str]) -> None:
        self._paragraph()
        self.lines.append("   " + inline(rest, self.name))

    def paragraph_ends(self, _rest: list[str]) -> None:
        self._paragraph()

    def description(self, rest: list[str]) -> None:
        self.words.add(["No", "\u2013", *rest], self.name)

    def list_begins(self, rest: list[str]) -> None:
        self._paragraph()
        self.lists.append(next((kind for kind in rest if kind in _LISTS), "-item"))
        self.counts.append(0)
        self.margin += _LISTS.get(self.lists[-1], 0)

    def item_begins(self, rest: list[str]) -> None:
        kind = self.lists[-1] if self.lists else "-item"
        if kind in {"-bullet", "-dash", "-enum", "-column"}:
            self.flush()
        else:
            self._paragraph()
        if kind == "-column":
            cells = " ".join(rest).split(" Ta ")
            self.lines.append(" " * self.margin + "  ".join(inline(tokens(cell), self.name) for cell in cells))
        elif kind in {"-tag", "-hang", "-ohang", "-inset", "-diag"}:
            self.lines.append(" " * (self.margin - _LISTS[kind]) + inline(rest, self.name))
        elif kind in {"-bullet", "-dash", "-enum"}:
            self.counts[-1] += 1
            self.bullet = {"-bullet": "\u2022   ", "-dash": "-   ", "-enum": f"{self.counts[-1]}.".ljust(4)}[kind]

    def list_ends(self, _rest: list[str]) -> None:
        self.flush()
        self.margin -= _LISTS.get(self.lists.pop(), 0) if self.lists else 0
        if self.counts:
            self.counts.pop()
        self._paragraph()

    def display_begins(self, rest: list[str]) -> None:
        self._paragraph()
        self.literal = "-literal" in rest or "-unfilled" in rest
        self.margin += _INDENT

    def display_ends(self, _rest: list[str]) -> None:
        self.flush()
        self.literal = False
        self.margin -= _INDENT
        self._paragraph()

    def literal_line(self, rest: list[str]) -> None:
        self.flush()
        self.lines.append(" " * (self.margin + _INDENT) + inline(rest, self.name))


_BLOCKS: dict[str, Callable[[_Page, list[str]], None]] = {
    "Dd": _Page.date,
    "Dt": _Page.titled,
    "Os": _Page.heading,
    "Sh": _Page.section_begins,
    "Ss": _Page.subsection_begins,
    "Pp": _Page.paragraph_ends,
    "Nd": _Page.description,
    "Bl": _Page.list_begins,
    "It": _Page.item_begins,
    "El": _Page.list_ends,
    "Bd": _Page.display_begins,
    "Ed": _Page.display_ends,
    "Dl": _Page.literal_line,
    "D1": _Page.literal_line,
}
