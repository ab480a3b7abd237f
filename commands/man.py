"""`llmshed man`: the manual pages of the installed version, also where man(1) does not find them."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Annotated

import typer

from llmshed.errors import ExitCode, LlmshedError

from . import _options, _output


class PageError(LlmshedError):
    """There is no such page."""

    exit_code = ExitCode.NO_INPUT


@dataclass(frozen=True, slots=True)
class Page:
    """One packaged page."""

    name: str
    section: str
    file: Traversable

    @property
    def title(self) -> str:
        """Return the one-line description of the page's NAME section."""
        found = [line for line in self.file.read_text("utf-8").splitlines() if line.startswith(".Nd ")]
        return found[0].removeprefix(".Nd ") if found else ""


def man(
    page: Annotated[
        str, typer.Argument(metavar="PAGE", help="A verb (serve), a page (llmshed.toml), or NAME.SECTION.")
    ] = "llmshed",
    list_pages: Annotated[bool, typer.Option("--list", help="List the pages.")] = False,
    as_json: _options.JsonOption = False,
) -> None:
    """Show a manual page, in a pager on a terminal and as plain text elsewhere.

    Example: llmshed man llmshed.toml
    """
    pages = _packaged()
    if list_pages:
        _list(pages, as_json=as_json)
        return
    found = _find(page, pages)
    if as_json:
        _output.print_json("llmshed.man/1", {"name": found.name, "section": found.section, "text": _plain(found)})
    elif not (sys.stdout.isatty() and _shown_by_a_pager(found)):
        typer.echo(_plain(found), nl=False)


def _packaged() -> list[Page]:
    """Return the pages that were installed, by name.

    Raises:
        PageError: there are none.
    """
    pages = []
    for file in resources.files("llmshed.man").iterdir():
        name, _, section = file.name.rpartition(".")
        if name and len(section) == 1 and section.isdigit():
            pages.append(Page(name, section, file))
    if not pages:
        raise PageError("this installation holds no manual pages; install llmshed from its wheel or its source tree")
    return sorted(pages, key=lambda page: (page.name, page.section))


def _find(wanted: str, pages: list[Page]) -> Page:
    """Return the page that a verb, a name, NAME.SECTION or NAME(SECTION) means.

    Raises:
        PageError: there is no such page; the text tells the nearest, or all.
    """
    name = wanted.removesuffix(")").replace("(", ".")
    known = {f"{page.name}.{page.section}": page for page in pages}
    # The first page of a name is that of its lowest section, as in man(1).
    known |= {page.name: page for page in reversed(pages)}
    for candidate in (name, f"llmshed-{name}", f"llmshed.{name}"):
        if candidate in known:
            return known[candidate]
    import difflib

    near = difflib.get_close_matches(name, known, n=1) or difflib.get_close_matches(
        f"llmshed-{name}", known, n=1, cutoff=0.85
    )
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(page.name for page in pages)}"
    raise PageError(f"no manual page {wanted!r} ({hint})")


def _list(pages: list[Page], *, as_json: bool) -> None:
    if as_json:
        listed = [{"name": page.name, "section": page.section, "title": page.title} for page in pages]
        _output.print_json("llmshed.man_list/1", {"pages": listed})
    else:
        _output.print_table({f"{page.name}({page.section})": page.title for page in pages})


def _shown_by_a_pager(page: Page) -> bool:
    """Show the page through man(1), else mandoc(1); False when neither is installed or it failed."""
    with resources.as_file(page.file) as path:
        for command in (["man", "-l"], ["mandoc", "-a"]):
            program = shutil.which(command[0])
            if program and subprocess.run([program, command[1], str(path)], check=False).returncode == 0:  # noqa: S603 - fixed programs, own file
                return True
    return False


def _plain(page: Page) -> str:
    from . import _mdoc

    return _mdoc.to_text(page.file.read_text("utf-8"))
