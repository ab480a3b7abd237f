"""Requests written before they are due, in a thread, so that making their texts delays nobody.

Counting a prompt takes a millisecond for each thousand of its tokens: on the event loop that would be the very lag that
is to be measured. A thread keeps a stretch of requests ready, bounded in number and bytes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from llmshed.engines.base import EngineRequest
    from llmshed.loadtest.plan import Planned

MOST_READY: Final = 1_000
MOST_READY_BYTES: Final = 1 << 26
ENOUGH_SECONDS: Final = 10.0
"""Of the plan, with which sending may begin: texts are made much faster than any target takes them."""
_BATCH: Final = 8
"""Requests written in one go: handing one over costs as much as a twentieth of writing it."""


class Written(NamedTuple):
    """A planned request with its body."""

    planned: "Planned"
    request: "EngineRequest"


class Ahead:
    """Keeps written requests ready, in order.

    Args:
        planned: what to write; it is taken from in the thread alone.
        write: makes the body of one.
    """

    def __init__(self, planned: "Iterator[Planned]", write: "Callable[[Planned], EngineRequest]") -> None:
        self._planned = planned
        self._write = write
        self._ready: asyncio.Queue[Written | BaseException | None] = asyncio.Queue()
        self._ready_bytes = 0
        self._broken: Exception | None = None
        self._room = asyncio.Event()
        self._enough = asyncio.Event()

    async def fill(self) -> None:
        """Write until nothing is planned any more; to be run beside whoever takes them."""
        loop = asyncio.get_running_loop()
        try:
            with ThreadPoolExecutor(1, "llmshed-prompts") as thread:
                while batch := await loop.run_in_executor(thread, self._written):
                    for one in batch:
                        self._ready_bytes += len(one.request.body)
                        self._ready.put_nowait(one)
                    if batch[-1].planned.at_seconds >= ENOUGH_SECONDS:
                        self._enough.set()
                    while not self._has_room():
                        self._enough.set()
                        self._room.clear()
                        await self._room.wait()
            self._ready.put_nowait(None)
        except Exception as error:  # noqa: BLE001 - raised again where the requests are taken
            self._ready.put_nowait(error)
        finally:
            self._enough.set()

    async def until_enough(self) -> None:
        """Wait until so many are ready that sending may begin: a stretch of the plan, as many as are kept, or all."""
        await self._enough.wait()

    async def take(self) -> AsyncIterator[Written]:
        """Yield them in order, each as soon as it is written.

        Raises:
            LlmshedError: the plan cannot be read on, or a prompt not be made; after those before it.
        """
        while (one := await self._ready.get()) is not None:
            if isinstance(one, BaseException):
                raise one
            self._ready_bytes -= len(one.request.body)
            self._room.set()
            yield one

    def _has_room(self) -> bool:
        return self._ready.qsize() < MOST_READY and self._ready_bytes < MOST_READY_BYTES

    def _written(self) -> list[Written]:
        """Write some more; what cannot be written is told once all before it was given out."""
        batch: list[Written] = []
        if self._broken is not None:
            raise self._broken
        try:
            batch.extend(Written(one, self._write(one)) for one in islice(self._planned, _BATCH))
        except Exception as error:
            self._broken = error
            if not batch:
                raise
        return batch
