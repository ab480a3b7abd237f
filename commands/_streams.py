"""The three standard streams, as whoever started the process left them: closed, full, or with a reader that went."""

import contextlib
import io
import os
import sys
from pathlib import Path


def open_missing_streams() -> None:
    """Open the null device for each standard stream that is closed.

    Without it the next file or socket would get its descriptor, and what is written to "stderr" would go there.
    `sys.stdin` stays None, so that whoever is to read it can say so.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor, which is this one
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open to the end of the process
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open to the end of the process


def escape_unwritable() -> None:
    """Have characters that the locale's encoding lacks written as escapes, as Python does on stderr by itself."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def reader_left(error: BaseException) -> bool:
    """Say whether an error is that of a pipe without a reader (`llmshed ... | head`).

    click and rich turn it into an exit code of 1 by themselves; it is then the context of theirs.
    """
    return isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError)


def forget_output() -> None:
    """Drop what could not be written, which Python would try again at its exit, and end with a code of its own."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
            continue
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
