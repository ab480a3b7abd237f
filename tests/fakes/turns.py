"""Promises of time between ends that share one loop, held in its turns: a busy machine makes those longer, not more."""

import asyncio
from collections.abc import Callable

TURN_SECONDS = 0.002
"""Least time between two looks."""


async def turned_seconds(condition: Callable[[], object]) -> float:
    """Wait until a condition holds and return the least time that the turns of the loop until then may have taken.

    On an idle machine this is about the time that passed. A wait that nothing but a timer ends has as many turns on a
    busy one, while the turns of a process that was not let run are missing.
    """
    turns = 0
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(TURN_SECONDS)
            turns += 1
    return turns * TURN_SECONDS
