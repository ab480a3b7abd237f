"""How far `llmshed whatif` has come, on the terminal of whoever waits."""

import sys
from typing import TYPE_CHECKING

from ._whatif_runs import Study, run_study

if TYPE_CHECKING:
    from llmshed.whatif.compare import Run


def performed(study: Study, *, quiet: bool) -> "tuple[Run, ...]":
    """Return all runs; meanwhile a bar on stderr tells how much of the traffic has arrived, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        return tuple(run_study(study, lambda _ended, _share: None))
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("runs"), MofNCompleteColumn(), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("runs", total=study.count)
        return tuple(run_study(study, lambda ended, share: bar.update(task, completed=ended + share)))
