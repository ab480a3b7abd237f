"""Background tasks that are never lost: each is referenced while it runs, and a crash is logged."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Protocol

_log = logging.getLogger(__name__)


class Spawned(Protocol):
    """A task that runs on its own: it may be cancelled, but its end is nobody's to wait for."""

    def cancel(self) -> bool:
        """Ask the task to end."""

    def done(self) -> bool:
        """Say whether it has ended."""


class Tasks:
    """Owns the background tasks of one part of the gateway; whoever makes it calls `cancel_all` or `finish` at the end.

    The event loop keeps only weak references to tasks, so a task that nobody holds may vanish while it waits, and an
    exception in it is told only when it is collected.
    """

    def __init__(self) -> None:
        """Start without tasks."""
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return how many tasks run."""
        return len(self._running)

    def spawn(self, coroutine: Coroutine[object, object, None], name: str) -> Spawned:
        """Start a coroutine as a task; `name` stands in the log line if it crashes."""
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def finish(self) -> None:
        """Wait until every task has ended by itself, those too that they start meanwhile."""
        while self._running:
            await asyncio.wait(set(self._running))

    async def cancel_all(self) -> None:
        """Cancel every task and wait until all have ended; tasks that they start meanwhile are ended too."""
        while self._running:
            for task in self._running:
                task.cancel()
            await asyncio.wait(set(self._running))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("task_crashed", extra={"task": task.get_name()}, exc_info=error)
