"""How far `llmshed replay` has come, on the terminal of whoever waits."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmshed.loadtest.open_loop import OpenLoop
    from llmshed.loadtest.tally import Tally

SHOWN_SECONDS = 0.5


@contextmanager
def progress(loop: "OpenLoop", tally: "Tally", *, quiet: bool) -> Iterator[None]:
    """Show what was sent and what came of it while the block runs; on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.status import Status

    # Drawn in a thread, which keeps the event loop from running meanwhile: seldom, since times are measured here.
    with Status("making prompts", console=Console(stderr=True), refresh_per_second=1 / SHOWN_SECONDS) as status:
        showing = asyncio.get_running_loop().create_task(_shown(status.update, loop, tally))
        try:
            yield
        finally:
            showing.cancel()


async def _shown(update: Callable[[str], None], loop: "OpenLoop", tally: "Tally") -> None:
    while True:
        await asyncio.sleep(SHOWN_SECONDS)
        if loop.started_at is None:
            continue
        lanes = tally.lanes.values()
        ended, finished = sum(lane.visits for lane in lanes), sum(lane.finished for lane in lanes)
        refused = sum(lane.refusals.total() for lane in lanes)
        update(f"sent {loop.sent:,}, running {loop.sent - ended:,}, finished {finished:,}, refused tries {refused:,}")
