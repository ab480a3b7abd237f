import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest

from llmshed.gateway.daemon import lifecycle as lifecycle_module
from llmshed.gateway.daemon.lifecycle import Lifecycle
from llmshed.gateway.daemon.notify import Notifier


class House:
    """A gateway of which only the drain is real."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.requests = 0
        self.empty = asyncio.Event()
        self.empty.set()

    def enter(self, requests: int) -> None:
        self.requests = requests
        self.empty.clear()

    def leave(self) -> None:
        self.requests = 0
        self.empty.set()

    def begin_draining(self) -> None:
        self.told.append("draining")

    def stop_listening(self) -> None:
        self.told.append("closed")

    async def idle(self) -> None:
        await self.empty.wait()

    def break_off(self) -> None:
        self.told.append("broken off")
        self.leave()

    def running(self) -> int:
        return self.requests


@pytest.fixture
def house() -> House:
    return House()


@pytest.fixture
async def life(house: House) -> AsyncIterator[Lifecycle]:
    async def reload() -> None:
        house.told.append("reload")

    life = Lifecycle(house, Notifier(None), reload, lambda: house.told.append("dump"))
    yield life
    await life.close()


async def test_a_stop_refuses_new_work_before_anything_else_can_run(house: House, life: Lifecycle) -> None:
    life.stop()
    assert house.told == ["draining"]
    await asyncio.wait_for(life.until_stopped(), 12)


async def test_an_empty_house_closes_after_the_delay_and_not_before(house: House, life: Lifecycle) -> None:
    life.stop()
    drain = asyncio.ensure_future(life.drain(0.1, 60))
    await asyncio.sleep(0.02)
    assert house.told == ["draining"]
    await asyncio.wait_for(drain, 12)
    assert house.told == ["draining", "closed"]


async def test_what_runs_is_waited_for(house: House, life: Lifecycle) -> None:
    house.enter(3)
    life.stop()
    drain = asyncio.ensure_future(life.drain(0, 60))
    await asyncio.sleep(0.05)
    assert not drain.done()
    house.leave()
    await asyncio.wait_for(drain, 12)
    assert house.told == ["draining", "closed"]


async def test_what_is_left_at_the_end_of_the_window_is_broken_off(house: House, life: Lifecycle) -> None:
    house.enter(3)
    life.stop()
    await asyncio.wait_for(life.drain(0, 0.05), 12)
    assert house.told == ["draining", "closed", "broken off"]


@pytest.mark.parametrize(("delay", "window"), [(60, 120), (0, 60)], ids=["in the delay", "in the window"])
async def test_a_second_stop_ends_every_step_at_once(
    house: House, life: Lifecycle, delay: float, window: float
) -> None:
    house.enter(3)
    life.stop()
    drain = asyncio.ensure_future(life.drain(delay, window))
    await asyncio.sleep(0.02)
    life.stop()
    await asyncio.wait_for(drain, 12)
    assert house.told == ["draining", "closed", "broken off"]


async def test_what_does_not_let_itself_be_broken_off_does_not_hold_the_exit(
    house: House, life: Lifecycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle_module, "LAST_SECONDS", 0.05)
    monkeypatch.setattr(house, "break_off", lambda: None)
    house.enter(1)
    life.stop()
    await asyncio.wait_for(life.drain(0, 0), 12)


async def test_a_gateway_that_drains_takes_no_other_configuration(house: House, life: Lifecycle) -> None:
    life.install_signals()
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.02)
    finally:
        life.remove_signals()
    assert house.told == ["draining"]


async def test_signals_mean_what_the_manual_says(house: House, life: Lifecycle) -> None:
    life.install_signals()
    try:
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.02)
    finally:
        life.remove_signals()
    assert house.told == ["reload", "dump", "draining"]
    house.enter(1)
    await asyncio.wait_for(life.drain(60, 60), 12)
    assert house.told[-1] == "broken off"
