"""How far `llmshed calibrate` has come: a line that changes on a terminal, a line for each phase elsewhere."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from llmshed.rendering.calibration_progress import progress_line

from ._output import print_note

if TYPE_CHECKING:
    from llmshed.calibration import Calibration, Progress

SHOWN_SECONDS = 0.5


@contextmanager
def progress(machine: "Calibration", *, quiet: bool) -> Iterator[None]:
    """Show where the machine stands while the block runs, on stderr."""
    if quiet:
        yield
        return
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.status import Status

        with Status("beginning", console=Console(stderr=True)) as status, _watching(machine, _every(status.update)):
            yield
        return
    with _watching(machine, _each_phase()):
        yield


@contextmanager
def _watching(machine: "Calibration", tell: "Callable[[Progress], None]") -> Iterator[None]:
    async def watch() -> None:
        while True:
            await asyncio.sleep(SHOWN_SECONDS)
            tell(machine.progress())

    watching = asyncio.get_running_loop().create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


def _every(update: Callable[[str], None]) -> "Callable[[Progress], None]":
    return lambda told: update(progress_line(told))


def _each_phase() -> "Callable[[Progress], None]":
    phase = ""

    def tell(told: "Progress") -> None:
        nonlocal phase
        if told.phase != phase:
            phase = told.phase
            print_note(progress_line(told))

    return tell
