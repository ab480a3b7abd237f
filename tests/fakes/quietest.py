"""Measures of stalls on a machine that does other work too: noise only ever adds, so the least of a few tells."""

from collections.abc import Awaitable, Callable

TRIES = 3


async def quietest(measure: Callable[[], Awaitable[float]], bound: float) -> float:
    """Return the least of up to three measures; the first one within the bound ends them."""
    least = float("inf")
    for _ in range(TRIES):
        least = min(least, await measure())
        if least < bound:
            break
    return least
