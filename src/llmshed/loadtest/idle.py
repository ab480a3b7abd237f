"""Whether somebody else uses a replica: its own metrics, read twice."""

import asyncio
from typing import TYPE_CHECKING, Final

from llmshed.loadtest.client import METRICS

if TYPE_CHECKING:
    from llmshed.loadtest.client import Client

WATCHED_SECONDS: Final = 1.0
"""Long enough to see a request come and go; traffic that is rarer than that disturbs little."""


async def why_busy(client: "Client") -> str | None:
    """Return what shows that a replica has other traffic; None when nothing does.

    Raises:
        EngineError: its metrics cannot be read.
    """
    first = client.engine.read_activity(await client.page(METRICS))
    await asyncio.sleep(WATCHED_SECONDS)
    second = client.engine.read_activity(await client.page(METRICS))
    for reading in (first, second):
        if reading.running_requests:
            return f"requests that run there: {reading.running_requests:g}"
        if reading.queued_requests:
            return f"requests that wait there: {reading.queued_requests:g}"
    before, after = first.prompt_tokens_total, second.prompt_tokens_total
    if before is not None and after is not None and after != before:
        return f"{after - before:g} prompt tokens came there within {WATCHED_SECONDS:g} s"
    if all(one is None for one in (second.running_requests, second.queued_requests, after)):
        return "its metrics do not tell whether anybody uses it"
    return None
