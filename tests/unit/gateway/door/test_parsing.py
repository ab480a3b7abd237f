"""Large bodies are worked on beside the loop, small ones at once."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from llmshed.gateway.door.parsing import INLINE_BYTES, BodyThread


@pytest.fixture
def thread() -> Iterator[BodyThread]:
    made = BodyThread()
    yield made
    made.close()


async def test_a_small_body_is_worked_on_at_once(thread: BodyThread) -> None:
    assert await thread.run(threading.get_ident, INLINE_BYTES) == threading.get_ident()


async def test_a_large_body_leaves_the_loop_alone(thread: BodyThread) -> None:
    may_go = threading.Event()
    held = asyncio.ensure_future(thread.run(lambda: may_go.wait(10), INLINE_BYTES + 1))
    await asyncio.sleep(0.01)
    assert not held.done()
    may_go.set()
    assert await held


async def test_errors_come_through(thread: BodyThread) -> None:
    with pytest.raises(ZeroDivisionError):
        await thread.run(lambda: 1 // 0, INLINE_BYTES + 1)


async def test_work_of_those_that_left_is_taken_back(thread: BodyThread) -> None:
    may_go = threading.Event()
    done: list[int] = []
    first = asyncio.ensure_future(thread.run(lambda: may_go.wait(10), INLINE_BYTES + 1))
    second = asyncio.ensure_future(thread.run(lambda: done.append(2), INLINE_BYTES + 1))
    third = asyncio.ensure_future(thread.run(lambda: done.append(3), INLINE_BYTES + 1))
    await asyncio.sleep(0.01)
    second.cancel()
    await asyncio.sleep(0)
    may_go.set()
    await asyncio.gather(first, third)
    assert done == [3]
