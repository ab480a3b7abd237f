"""Token counting off the event loop: byte bounds first, then a thread pool behind two bounded queues.

Counting a megabyte takes about a second of a core, so it may neither run on the loop nor let small prompts wait behind
large ones. Nor may a large one keep its thread: it is counted step by step, and after each step those that wait have
their turn. All book-keeping happens on the loop's thread; the threads do nothing but count.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from llmshed.clock import Clock
from llmshed.config.counting import CountingSettings
from llmshed.errors import LlmshedError
from llmshed.gateway.counting.prompt_bytes import prompt_bytes
from llmshed.tokenizing.base import PromptCounter
from llmshed.tokenizing.prompts import Prompt, PromptCount

T = TypeVar("T")

EXACT_UP_TO: Final = 2
"""Counts are told exactly up to so many times what is useful; of a larger prompt it is known that it is larger."""


class BacklogError(LlmshedError):
    """The queue of the prompt's size is full; `retry_after_seconds` estimates when what fills it is counted."""

    def __init__(self, queue: str, waiting_bytes: int, max_bytes: int, retry_after_seconds: float) -> None:
        """Keep the estimate beside the sentence."""
        super().__init__(f"{waiting_bytes:,} bytes of {queue} prompts wait to be counted; at most {max_bytes:,} may")
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True, slots=True)
class TooLarge:
    """The bytes of prompt `index` prove at least `at_least_tokens` tokens, which is beyond use: nothing was counted."""

    index: int
    at_least_tokens: int


@dataclass(slots=True, eq=False)
class _Job(Generic[T]):
    """One prompt on its way through a queue."""

    steps: Iterator[T | None]
    size: int
    done: asyncio.Future[T]


@dataclass(slots=True)
class _Queue:
    """Prompts of one size class; `held_bytes` counts those that wait and those that run."""

    name: str
    max_bytes: int
    held_bytes: int = 0
    running: int = 0
    waiting: deque[_Job[Any]] = field(default_factory=deque)

    def takes(self, size: int) -> bool:
        """Say whether `size` more bytes may be held; an empty queue takes any size, or some would never be taken."""
        return self.held_bytes == 0 or self.held_bytes + size <= self.max_bytes


class CountingPool:
    """Counts prompts for the whole gateway.

    Small prompts go first. With two threads or more, one is kept from large prompts, so that small ones never wait for
    a large one to end, and one from small prompts while large ones wait, so that a flood of small ones starves none.

    Args:
        settings: sizes and number of threads.
        clock: measures how long counting takes, from which the wait of a full queue is estimated.
    """

    def __init__(self, settings: CountingSettings, clock: Clock) -> None:
        """Make the pool; its threads start with their first work."""
        self._inline_bytes = settings.inline_bytes
        self._small_bytes = settings.small_bytes
        self._threads = settings.threads
        self._clock = clock
        self._pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="counting")
        self._small = _Queue("small", settings.small_queue_bytes)
        self._large = _Queue("large", settings.large_queue_bytes)
        self._counted_bytes = 0
        self._busy_seconds = 0.0

    @property
    def small_queue_bytes(self) -> int:
        """Return the bytes that wait or run in the small queue."""
        return self._small.held_bytes

    @property
    def large_queue_bytes(self) -> int:
        """Return the bytes that wait or run in the large queue."""
        return self._large.held_bytes

    async def count(
        self,
        counter: PromptCounter,
        prompts: tuple[Prompt, ...],
        max_useful_tokens: int | None = None,
        sizes: tuple[int, ...] | None = None,
    ) -> tuple[PromptCount, ...] | TooLarge:
        """Count the prompts of one request, all or none, and return one count a prompt in the order given.

        A prompt that turns out to be far beyond use is not counted to its end.

        Args:
            counter: the counter of the pool's tokenizer.
            prompts: what is to be counted.
            max_useful_tokens: tokens of one prompt beyond which the exact count changes nothing; None for no bound.
            sizes: bytes of each prompt, where they are known; None measures them here.

        Raises:
            BacklogError: too many bytes wait already; nothing was queued.
            PromptError: a prompt cannot be counted.
        """
        if max_useful_tokens is not None:
            for index, prompt in enumerate(prompts):
                low = counter.bounds(prompt).low
                if low > max_useful_tokens:
                    return TooLarge(index, low)
        if sizes is None:
            sizes = tuple(map(prompt_bytes, prompts))
        if sum(sizes) <= self._inline_bytes:
            return tuple(counter.count(prompt) for prompt in prompts)
        enough = None if max_useful_tokens is None else EXACT_UP_TO * max_useful_tokens
        counts = await self._off_loop(
            [(counter.steps(prompt, enough), size) for prompt, size in zip(prompts, sizes, strict=True)]
        )
        bounds = (TooLarge(index, count.tokens) for index, count in enumerate(counts) if count.is_bound)
        return next(bounds, counts)

    def close(self) -> None:
        """Take no more work; what runs ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def run(self, steps: Iterator[T | None], size: int) -> T:
        """Do other work on a prompt of `size` bytes, as listing its tokens, under the same bounds and order.

        Returns what `steps` yields that is not None: each None lets others have their turn.

        Raises:
            BacklogError: as `count`; and whatever `steps` raises.
        """
        (result,) = await self._off_loop([(steps, size)])
        return result

    async def _off_loop(self, works: list[tuple[Iterator[T | None], int]]) -> tuple[T, ...]:
        for queue in (self._small, self._large):
            size = sum(size for _, size in works if self._queue_of(size) is queue)
            if size and not queue.takes(size):
                raise BacklogError(queue.name, queue.held_bytes, queue.max_bytes, self._drain_seconds(queue))
        jobs = [self._enqueue(steps, size) for steps, size in works]
        self._start_waiting()
        try:
            return tuple([await job.done for job in jobs])
        finally:
            for job in jobs:
                self._withdraw(job)

    def _queue_of(self, size: int) -> _Queue:
        return self._small if size <= self._small_bytes else self._large

    def _enqueue(self, steps: Iterator[T | None], size: int) -> "_Job[T]":
        job = _Job(steps, size, asyncio.get_running_loop().create_future())
        queue = self._queue_of(size)
        queue.held_bytes += size
        queue.waiting.append(job)
        return job

    def _withdraw(self, job: _Job[Any]) -> None:
        """Let go of a job that nobody waits for any more; a thread that already counts it frees its bytes later."""
        queue = self._queue_of(job.size)
        if job in queue.waiting:
            queue.waiting.remove(job)
            queue.held_bytes -= job.size
        job.done.cancel()

    def _start_waiting(self) -> None:
        """Give free threads their next prompts, small ones first."""
        for queue, other in ((self._small, self._large), (self._large, self._small)):
            while queue.waiting and queue.running + other.running < self._threads:
                kept = 1 if self._threads > 1 and (queue is self._large or other.waiting) else 0
                if queue.running >= self._threads - kept:
                    break
                self._start(queue, queue.waiting.popleft())

    def _start(self, queue: _Queue, job: _Job[Any]) -> None:
        queue.running += 1
        loop = asyncio.get_running_loop()
        began = self._clock.now()

        def ended(counted: Future[Any]) -> None:
            # In the counting thread; a loop that closed meanwhile has nobody left to tell.
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._end, queue, job, began, counted)

        self._pool.submit(next, job.steps).add_done_callback(ended)

    def _end(self, queue: _Queue, job: _Job[Any], began: float, counted: Future[Any]) -> None:
        queue.running -= 1
        self._busy_seconds += self._clock.now() - began
        if _has_more(counted) and not job.done.done():
            queue.waiting.append(job)
            self._start_waiting()
            return
        queue.held_bytes -= job.size
        self._counted_bytes += job.size
        if not job.done.done():
            if counted.cancelled():
                job.done.cancel()
            elif (error := counted.exception()) is not None:
                job.done.set_exception(error)
            else:
                job.done.set_result(counted.result())
        self._start_waiting()

    def _drain_seconds(self, queue: _Queue) -> float:
        """Estimate how long the queue's bytes take at the rate seen so far; one second before any was seen."""
        if self._counted_bytes == 0:
            return 1.0
        return queue.held_bytes * self._busy_seconds / self._counted_bytes / self._threads


def _has_more(counted: Future[Any]) -> bool:
    """Say whether a step ended without the result."""
    return not counted.cancelled() and counted.exception() is None and counted.result() is None
