"""Work on request bodies in proportion to their size: small ones at once, large ones in a thread beside the loop.

Two megabytes made to be slow take half a second to parse and to understand. In a thread that time is shared with the
loop, which is stopped only as long as one step of C code holds the interpreter: some tens of milliseconds.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

INLINE_BYTES = 65_536
"""Bodies up to this size are worked on at once: at the slowest they take some 15 ms, and usually less than 1 ms."""


class BodyThread:
    """One thread for all large bodies, in the order in which they came: more would only fight for the interpreter."""

    def __init__(self) -> None:
        """Make the thread, which starts with its first work."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="parsing")

    async def run(self, work: Callable[[], T], size_bytes: int) -> T:
        """Return what `work` on a body of this size returns, or raise what it raises.

        Cancelling the wait takes work back that has not begun; what runs ends by itself, unheard.
        """
        if size_bytes <= INLINE_BYTES:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """Take no more work; what runs ends by itself."""
        self._thread.shutdown(wait=False, cancel_futures=True)
