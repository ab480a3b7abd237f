"""A loop in whose time hours pass at once: still while anything is to be done, it then leaps to the next timer.

Sockets are real, so everything that talks through it has to live in it: on loopback what was written is there at once.
"""

import asyncio
import functools
import selectors
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import Any, TypeVarTuple

import pytest

from fakes.house import House, house
from fakes.loops import AsyncTest
from llmshed.gateway.daemon import pulse
from llmshed.gateway.door import vanished
from llmshed.gateway.replicas import signals

Arguments = TypeVarTuple("Arguments")

GRACE_SECONDS = 0.001
"""Real time in which bytes that are under way may still arrive, before it leaps."""

FAR_LEAP_SECONDS = 0.5
FAR_GRACE_SECONDS = 0.01
"""A leap this far may pass a timeout: on a busy machine even loopback's bytes are under way for more than a moment."""


class LeapingLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers never wait."""

    def __init__(self) -> None:
        self._leaping = _LeapingSelector()
        super().__init__(self._leaping)

    def time(self) -> float:
        return self._leaping.now

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Arguments], Any], *args: *Arguments
    ) -> "asyncio.Future[Any]":
        """Run as ever; while a thread is at work time does not leap."""
        future = super().run_in_executor(executor, func, *args)
        self._leaping.threads += 1
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, _: "asyncio.Future[Any]") -> None:
        self._leaping.threads -= 1


class LoopClock:
    """The time of the running loop."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        return time.time()  # noqa: TID251 - for logs only, whose dates no test reads


def in_leaping_time(test: AsyncTest) -> Callable[..., None]:
    """Make a test of an asynchronous function that runs on a loop of this kind."""

    @functools.wraps(test)
    def run(*args: Any, **named: Any) -> None:
        with asyncio.Runner(loop_factory=LeapingLoop) as runner:
            runner.run(test(*args, **named))

    return run


@asynccontextmanager
async def leaping_house(settings: str = "", **given: Any) -> AsyncIterator[House]:
    """Run a gateway that looks at itself and at its replicas but rarely, since each look is a leap.

    It never looks whether a client has vanished: the kernel that it asks knows nothing of these hours.
    """
    quiet = "[upstream]\nprobe_interval_seconds = 3600\nsignal_interval_seconds = 0\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pulse, "LAG_INTERVAL_SECONDS", 60.0)
        patch.setattr(pulse, "CHECK_INTERVAL_SECONDS", 60.0)
        patch.setattr(signals, "LOOK_SECONDS", 60.0)
        patch.setattr(vanished, "LOOK_SECONDS", 1e6)
        async with house(settings + quiet, clock=LoopClock(), **given) as gate:
            yield gate


class _LeapingSelector(selectors.DefaultSelector):
    """Waits for sockets as ever, but only as long as they may need."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        grace = FAR_GRACE_SECONDS if timeout > FAR_LEAP_SECONDS else GRACE_SECONDS
        ready = super().select(timeout if self.threads else grace)
        if not ready:
            self.now += timeout
        return ready
