"""Reading what a user points at: a file, or standard input for `-`."""

import sys
from pathlib import Path

from llmshed.errors import ExitCode, LlmshedError


class MissingInputError(LlmshedError):
    """A file that was named cannot be read."""

    exit_code = ExitCode.NO_INPUT


class UnreadableTextError(LlmshedError):
    """Input that should be text is not UTF-8."""

    exit_code = ExitCode.BAD_DATA


def shown_name(name: str) -> str:
    """Return what messages call an input: its file, or standard input for `-`."""
    return "standard input" if name == "-" else name


def read_bytes(name: str, most_bytes: int = -1) -> bytes:
    """Return the content of a file, or of standard input for `-`.

    Args:
        name: the file, or `-`.
        most_bytes: where to stop, so that an endless input ends too; negative reads all.

    Raises:
        MissingInputError: the file cannot be read, or standard input is closed.
    """
    if not name:  # which would be the working directory
        raise MissingInputError("'' names no file")
    if name == "-":
        if sys.stdin is None:
            raise MissingInputError("standard input: it is closed")
        return sys.stdin.buffer.read(most_bytes)
    try:
        with Path(name).open("rb") as file:
            return file.read(most_bytes)
    except OSError as error:
        raise MissingInputError(f"{name}: {error.strerror or error}") from error


def read_text(name: str) -> str:
    """Return the text of a file, or of standard input for `-`; nothing of it is changed, line ends included.

    Raises:
        MissingInputError: the file cannot be read.
        UnreadableTextError: it is not UTF-8.
    """
    return as_text(read_bytes(name), name)


def as_text(content: bytes, name: str) -> str:
    """Return what was read from `name` as text.

    Raises:
        UnreadableTextError: it is not UTF-8.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableTextError(f"{shown_name(name)}: byte {error.start} is not UTF-8") from error
