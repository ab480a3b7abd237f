"""The loop's look at itself: how late it runs, whether the ledgers hold, and the watchdog's beat."""

import asyncio
import logging
from collections.abc import Callable

from llmshed.gateway.daemon.notify import Notifier

LAG_INTERVAL_SECONDS = 0.1
CHECK_INTERVAL_SECONDS = 1.0
STALL_SECONDS = 0.25
"""A lag worth a log line; prompts of a megabyte in counting stay far below it."""

_log = logging.getLogger(__name__)


async def measure_lag(observe: Callable[[float], None]) -> None:
    """Tell, ten times a second, how many seconds late the loop wakes this task."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + LAG_INTERVAL_SECONDS
        await asyncio.sleep(LAG_INTERVAL_SECONDS)
        lag = max(0.0, loop.time() - due)
        observe(lag)
        if lag > STALL_SECONDS:
            _log.warning("event_loop_stalled", extra={"seconds": round(lag, 3)})


async def beat(check: Callable[[], None], status: Callable[[], str], notifier: Notifier) -> None:
    """Once a second: check every invariant, show the state to systemd, and feed its watchdog."""
    shown = ""
    while True:
        check()
        if (text := status()) != shown:
            notifier.status(text)
            shown = text
        notifier.beat()
        await asyncio.sleep(CHECK_INTERVAL_SECONDS)
