"""How far `llmshed whatif` has come, on the terminal of whoever waits."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ._whatif_runs import Study, run_study

if TYPE_CHECKING:
    from llmshed.whatif.compare import Run


def performed(study: Study, *, quiet: bool) -> "tuple[Run, ...]":
    """Return all runs; meanwhile a bar tells how much of the traffic has arrived."""
    with shown("runs", study.count, quiet=quiet) as told:
        return tuple(run_study(study, lambda ended, share: told(ended + share)))


@contextmanager
def shown(what: str, count: int, *, quiet: bool) -> Iterator[Callable[[float], None]]:
    """Give what is told how many have ended so far; a bar on stderr shows it, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda _ended: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), MofNCompleteColumn(), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=count)
        yield lambda ended: bar.update(task, completed=ended)
