"""Background tasks are kept, named in the log when they crash, and ended together."""

import asyncio
import gc
import logging

import pytest

from llmshed.gateway.tasks import Tasks


async def _forever() -> None:
    await asyncio.Event().wait()


async def test_a_task_survives_a_collection_while_nobody_else_holds_it() -> None:
    tasks = Tasks()
    tasks.spawn(_forever(), "kept")
    await asyncio.sleep(0)
    gc.collect()
    assert len(tasks) == 1
    await tasks.cancel_all()


async def test_a_crash_is_logged_under_the_tasks_name(caplog: pytest.LogCaptureFixture) -> None:
    async def crash() -> None:
        raise ValueError("no such replica")

    tasks = Tasks()
    with caplog.at_level(logging.ERROR):
        task = tasks.spawn(crash(), "probe r1")
        for _ in range(3):
            await asyncio.sleep(0)
    assert task.done()
    (record,) = caplog.records
    assert (record.message, vars(record)["task"]) == ("task_crashed", "probe r1")
    assert "no such replica" in caplog.text
    assert len(tasks) == 0


async def test_cancel_all_also_ends_what_a_cancelled_task_starts() -> None:
    tasks = Tasks()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            tasks.spawn(_forever(), "heir")

    tasks.spawn(stubborn(), "stubborn")
    await asyncio.sleep(0)
    await tasks.cancel_all()
    assert len(tasks) == 0


async def test_cancelling_is_no_crash(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks()
    tasks.spawn(_forever(), "quiet")
    await asyncio.sleep(0)
    await tasks.cancel_all()
    assert caplog.text == ""


async def test_finish_waits_for_what_a_task_starts_and_cancels_nothing() -> None:
    tasks, done = Tasks(), []

    async def heir() -> None:
        await asyncio.sleep(0)
        done.append("heir")

    async def first() -> None:
        await asyncio.sleep(0)
        tasks.spawn(heir(), "heir")
        done.append("first")

    tasks.spawn(first(), "first")
    await tasks.finish()
    assert done == ["first", "heir"]
