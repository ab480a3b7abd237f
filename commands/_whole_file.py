"""Files that are there whole or not at all."""

import os
from pathlib import Path

from llmshed.errors import OutputError

from ._signals import ending_in_order


def place_of(option: str, path: Path) -> Path:
    """Return where a file of this name stands or would stand, links followed.

    Raises:
        OutputError: the links lead in a circle.
    """
    try:
        return path.resolve()
    except RuntimeError:  # so up to Python 3.12; later it is given back, and opening it fails
        raise OutputError(f"{option} {path}: a symbolic link leads back to itself; name another file") from None


def check_place(option: str, path: Path) -> None:
    """See that a file can be put there, before minutes are spent on its contents.

    Raises:
        OutputError: the name is that of no file, there is no such directory, it cannot be written in, or a device or a
            pipe stands there, which the file would replace.
    """
    folder = place_of(option, path).parent
    if str(path) == "-" or path.is_dir():
        raise OutputError(f"{option} {path}: the name of a file is needed")
    if path.exists() and not path.is_file():
        raise OutputError(f"{option} {path}: the name of a file is needed; it is a device or a pipe")
    if not folder.is_dir():
        raise OutputError(f"{option} {path}: there is no directory {folder}")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{option} {path}: nothing can be written in the directory {folder}")


def put_whole(option: str, path: Path, text: str) -> None:
    """Write a text beside its place, see it on the disk, then put it there.

    Raises:
        OutputError: writing failed; what was there before is still there.
    """
    place = place_of(option, path)
    beside = place.with_name(f".llmshed-{os.getpid()}")  # as long as any name is allowed to be
    with ending_in_order():
        try:
            with beside.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(place)
            _see_on_disk(place.parent)
        except OSError as error:
            raise OutputError(f"{option} {path}: cannot be written: {error.strerror}") from None
        finally:
            beside.unlink(missing_ok=True)


def _see_on_disk(folder: Path) -> None:
    """Wait until the folder's new entry would outlive the machine's fall."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
