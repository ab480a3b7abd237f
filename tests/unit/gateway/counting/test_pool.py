"""Counting never stops the loop, serves small prompts first, bounds what waits, and forgets who left."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from llmshed.clock import SystemClock
from llmshed.config.counting import CountingSettings
from llmshed.errors import PromptError
from llmshed.gateway.counting.pool import BacklogError, CountingPool, TooLarge
from llmshed.gateway.counting.prompt_bytes import prompt_bytes
from llmshed.tokenizing.base import NO_DIGESTS, TokenBounds
from llmshed.tokenizing.prompts import ChatPrompt, IdsPrompt, Prompt, PromptCount, TextPrompt


class GatedCounter:
    """Counts one token a byte; a text that begins with a letter of `gates` waits until that gate is opened.

    A text takes a step for each `step` bytes, and is counted no further than is enough.
    """

    digests = NO_DIGESTS

    def __init__(self, gates: str = "", step: int = 10_000) -> None:
        self.step = step
        self.gates = {letter: threading.Event() for letter in gates}
        self.begun: list[str] = []
        self.threads: list[str] = []

    def bounds(self, prompt: Prompt) -> TokenBounds:
        size = prompt_bytes(prompt)
        return TokenBounds(size // 4, size)

    def count(self, prompt: Prompt) -> PromptCount:
        assert isinstance(prompt, TextPrompt)
        self.begun.append(prompt.text[:2])
        self.threads.append(threading.current_thread().name)
        if prompt.text.startswith("!"):
            raise PromptError("the template refuses it")
        if gate := self.gates.get(prompt.text[0]):
            assert gate.wait(20)
        return PromptCount(len(prompt.text), len(prompt.text))

    def steps(self, prompt: Prompt, enough_tokens: int | None = None) -> Iterator[PromptCount | None]:
        assert isinstance(prompt, TextPrompt)
        size = len(prompt.text)
        for counted in range(self.step, size, self.step):
            self.count(prompt)
            if enough_tokens is not None and counted > enough_tokens:
                yield PromptCount(counted, size, is_bound=True)
                return
            yield None
        yield self.count(prompt)


def settings(**changes: int) -> CountingSettings:
    given = {
        "threads": 2,
        "inline_bytes": 10,
        "small_bytes": 100,
        "small_queue_bytes": 300,
        "large_queue_bytes": 5_000,
    }
    return CountingSettings.model_validate(given | changes)


@pytest.fixture
def pool() -> Iterator[CountingPool]:
    pool = CountingPool(settings(), SystemClock())
    yield pool
    pool.close()


@pytest.fixture
def narrow() -> Iterator[CountingPool]:
    pool = CountingPool(settings(threads=1), SystemClock())
    yield pool
    pool.close()


def start(pool: CountingPool, counter: GatedCounter, text: str) -> "asyncio.Future[tuple[PromptCount, ...] | TooLarge]":
    return asyncio.ensure_future(pool.count(counter, (TextPrompt(text),)))


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what threads do, which tell no event of the loop."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the thread under test sets no event
            await asyncio.sleep(0.001)


async def test_a_tiny_prompt_is_counted_on_the_loop_at_once(pool: CountingPool) -> None:
    counter = GatedCounter()
    result = await pool.count(counter, (TextPrompt("tiny"),))
    assert not isinstance(result, TooLarge)
    assert [count.tokens for count in result] == [4]
    assert counter.threads == [threading.main_thread().name]


async def test_counts_keep_the_order_of_the_prompts(pool: CountingPool) -> None:
    prompts = tuple(TextPrompt("x" * size) for size in (700, 3, 70))
    result = await pool.count(GatedCounter(), prompts)
    assert not isinstance(result, TooLarge)
    assert [count.tokens for count in result] == [700, 3, 70]
    assert (pool.small_queue_bytes, pool.large_queue_bytes) == (0, 0)


async def test_the_loop_runs_while_a_thread_counts(pool: CountingPool) -> None:
    counter = GatedCounter("g")
    counting = start(pool, counter, "g" * 500)
    for _ in range(3):
        await asyncio.sleep(0)
    assert not counting.done()
    assert pool.large_queue_bytes == 500
    counter.gates["g"].set()
    await counting
    assert pool.large_queue_bytes == 0


async def test_a_prompt_whose_bytes_prove_it_too_large_is_never_counted(pool: CountingPool) -> None:
    counter = GatedCounter()
    result = await pool.count(counter, (TextPrompt("ok"), TextPrompt("x" * 800)), max_useful_tokens=199)
    assert result == TooLarge(1, 200)
    assert counter.begun == []


async def test_small_prompts_pass_large_ones_that_wait(narrow: CountingPool) -> None:
    counter = GatedCounter("a")
    first = start(narrow, counter, "a" * 200)
    await until(lambda: counter.begun == ["aa"])
    second = start(narrow, counter, "b" * 200)
    small = start(narrow, counter, "c" * 50)
    await asyncio.sleep(0)
    counter.gates["a"].set()
    await asyncio.gather(first, second, small)
    assert counter.begun == ["aa", "cc", "bb"]


async def test_large_prompts_leave_one_thread_to_small_ones(pool: CountingPool) -> None:
    counter = GatedCounter("ab")
    large = [start(pool, counter, letter * 500) for letter in "ab"]
    await until(lambda: counter.begun == ["aa"])
    small = await start(pool, counter, "c" * 50)
    assert not isinstance(small, TooLarge)
    assert counter.begun == ["aa", "cc"]
    for gate in counter.gates.values():
        gate.set()
    await asyncio.gather(*large)


async def test_a_flood_of_small_prompts_leaves_one_thread_to_large_ones(pool: CountingPool) -> None:
    counter = GatedCounter("abcd")
    first = [start(pool, counter, letter * 50) for letter in "ab"]
    await until(lambda: sorted(counter.begun) == ["aa", "bb"])
    large = start(pool, counter, "l" * 500)
    flood = [start(pool, counter, letter * 50) for letter in "cd"]
    await asyncio.sleep(0)
    counter.gates["a"].set()
    await large
    assert counter.begun[2] == "ll"
    for gate in counter.gates.values():
        gate.set()
    await asyncio.gather(*first, *flood)


async def test_a_long_count_makes_way_after_each_step(narrow: CountingPool) -> None:
    counter = GatedCounter("a", step=100)
    long = start(narrow, counter, "a" * 300)
    await until(lambda: counter.begun == ["aa"])
    others = [start(narrow, counter, "b" * 200), start(narrow, counter, "c" * 50)]
    await asyncio.sleep(0)
    assert narrow.large_queue_bytes == 500
    counter.gates["a"].set()
    await asyncio.gather(long, *others)
    assert counter.begun == ["aa", "cc", "bb", "aa", "bb", "aa"]
    assert (narrow.small_queue_bytes, narrow.large_queue_bytes) == (0, 0)


async def test_a_count_ends_early_where_its_prompt_is_far_beyond_use(pool: CountingPool) -> None:
    counter = GatedCounter(step=100)
    # Its bytes prove 125 tokens only, and it is counted to the first step beyond twice of what is useful.
    result = await pool.count(counter, (TextPrompt("ok" * 30), TextPrompt("x" * 500)), max_useful_tokens=150)
    assert result == TooLarge(1, 400)
    assert counter.begun.count("xx") == 4
    whole = await pool.count(counter, (TextPrompt("y" * 300),), max_useful_tokens=150)
    assert not isinstance(whole, TooLarge)
    assert whole[0].tokens == 300


async def test_a_client_that_leaves_between_two_steps_is_counted_no_further(narrow: CountingPool) -> None:
    counter = GatedCounter("a", step=100)
    long = start(narrow, counter, "a" * 1_000)
    await until(lambda: counter.begun == ["aa"])
    long.cancel()
    await asyncio.wait([long])
    counter.gates["a"].set()
    await until(lambda: narrow.large_queue_bytes == 0)
    await start(narrow, counter, "b" * 50)
    assert counter.begun == ["aa", "bb"]


async def test_a_full_queue_refuses_and_keeps_nothing_of_the_refused(pool: CountingPool) -> None:
    counter = GatedCounter("g")
    held = [start(pool, counter, "g" * 100) for _ in range(3)]
    await asyncio.sleep(0)
    assert pool.small_queue_bytes == 300
    with pytest.raises(BacklogError, match="300 bytes of small prompts wait"):
        await pool.count(counter, (TextPrompt("x" * 500), TextPrompt("x" * 11)))
    assert (pool.small_queue_bytes, pool.large_queue_bytes) == (300, 0)
    counter.gates["g"].set()
    await asyncio.gather(*held)
    assert pool.small_queue_bytes == 0


async def test_a_prompt_larger_than_its_whole_queue_is_taken_when_the_queue_is_empty(pool: CountingPool) -> None:
    result = await pool.count(GatedCounter(), (TextPrompt("x" * 6_000),))
    assert not isinstance(result, TooLarge)
    assert result[0].tokens == 6_000


async def test_leaving_the_queue_frees_its_bytes_at_once(narrow: CountingPool) -> None:
    counter = GatedCounter("a")
    running = start(narrow, counter, "a" * 500)
    await until(lambda: counter.begun == ["aa"])
    waiting = start(narrow, counter, "b" * 700)
    await asyncio.sleep(0)
    assert narrow.large_queue_bytes == 1_200
    waiting.cancel()
    await asyncio.wait([waiting])
    assert narrow.large_queue_bytes == 500
    counter.gates["a"].set()
    await running
    assert counter.begun == ["aa"]


async def test_leaving_a_running_count_frees_its_bytes_when_the_thread_is_done(narrow: CountingPool) -> None:
    counter = GatedCounter("a")
    running = start(narrow, counter, "a" * 500)
    await until(lambda: counter.begun == ["aa"])
    running.cancel()
    await asyncio.wait([running])
    assert narrow.large_queue_bytes == 500
    after = start(narrow, counter, "b" * 50)
    await asyncio.sleep(0)
    counter.gates["a"].set()
    await after
    assert (narrow.small_queue_bytes, narrow.large_queue_bytes) == (0, 0)


async def test_a_prompt_that_cannot_be_counted_tells_why_and_frees_its_companions(pool: CountingPool) -> None:
    with pytest.raises(PromptError, match="the template refuses it"):
        await pool.count(GatedCounter(), (TextPrompt("!" * 50), TextPrompt("!" * 60), TextPrompt("x" * 200)))
    await until(lambda: pool.small_queue_bytes + pool.large_queue_bytes == 0)


async def test_a_backlog_tells_when_to_come_back(pool: CountingPool) -> None:
    counter = GatedCounter("g")
    await pool.count(counter, (TextPrompt("x" * 100),))
    held = [start(pool, counter, "g" * 100) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(BacklogError) as refused:
        await pool.count(counter, (TextPrompt("x" * 100),))
    assert refused.value.retry_after_seconds > 0
    counter.gates["g"].set()
    await asyncio.gather(*held)


@pytest.mark.parametrize(
    ("prompt", "size"),
    [
        (TextPrompt("abc"), 3),
        (TextPrompt("é€"), 5),
        (TextPrompt("\ud800"), 3),
        (IdsPrompt((1, 2, 3)), 0),
        (ChatPrompt([{"role": "user", "content": "hi"}]), 4 + 4 + 7 + 2 + 2 * 8),
    ],
)
def test_the_size_of_a_prompt_is_that_of_its_texts(prompt: Prompt, size: int) -> None:
    assert prompt_bytes(prompt) == size


def test_a_deeply_nested_prompt_has_a_size_too() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    assert prompt_bytes(ChatPrompt([{"content": nested}])) == 7 + 16
