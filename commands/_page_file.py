"""The page of a command: a file that is there whole or not at all."""

import logging
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from llmshed.errors import OutputError

from ._output import print_note
from ._whole_file import place_of, put_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from llmshed.rendering.page import Page


def check_page_file(path: Path, inputs: "Iterable[str | Path | None]") -> None:
    """See that a page can be written there, before minutes are spent on its contents.

    Raises:
        OutputError: its links lead in a circle, the name is that of no file, there is no such directory, it cannot be
            written in, or the file is one of the inputs.
    """
    if str(path) == "-":
        raise OutputError("--html -: the name of a file is needed; standard output has the tables, or the object")
    folder = place_of("--html", path).parent
    if not folder.is_dir():
        raise OutputError(f"--html {path}: there is no directory {folder}")
    if path.is_dir():
        raise OutputError(f"--html {path}: it is a directory; the name of a file is needed")
    if path.exists() and any(one is not None and Path(one).exists() and path.samefile(one) for one in inputs):
        raise OutputError(f"--html {path}: this file is read, so that the page would replace it; name another")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"--html {path}: nothing can be written in the directory {folder}")


def write_page(path: Path, page_of: "Callable[[bool], Page]") -> None:
    """Write a page beside its place, then put it there; without matplotlib it has no drawings, and that is told.

    Args:
        path: the file.
        page_of: returns the page, with its drawings or without.

    Raises:
        OutputError: writing failed; what was in the file before is still there.
    """
    from llmshed.rendering.page import render_page

    drawn = find_spec("matplotlib") is not None
    # At its first drawing it tells of its font cache, and where no home is writable, of that.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    if not drawn:
        print_note("the page has no drawings, which need matplotlib: pip install 'llmshed[plots]'")
    text = render_page(page_of(drawn))
    place = place_of("--html", path)
    if not place.exists() or place.is_file():
        put_whole("--html", path, text)
        return
    try:
        place.write_text(text, encoding="utf-8")  # a pipe or a device, which a renamed file would replace
    except BrokenPipeError:  # whoever read it went away, which is no mistake
        raise
    except OSError as error:
        raise OutputError(f"--html {path}: cannot be written: {error.strerror}") from None
