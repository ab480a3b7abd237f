"""From the first signal to the last byte.

After SIGTERM the gateway is not ready at once. Its data listener stays open for the drain delay and answers new work
503, so that balancers notice before connections fail; then it closes, and running requests have until the end of the
drain window. What is left gets an error event. A second signal ends all of it within two seconds.
"""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from typing import Protocol

from llmshed.gateway.daemon.notify import Notifier
from llmshed.gateway.tasks import Tasks

LAST_SECONDS = 0.75
"""What connections get to close after an error event, at the drain's end and after a second signal."""
EXTENSION_SECONDS = 20.0
"""How much stop time is asked of systemd at a time while requests still run."""

_log = logging.getLogger(__name__)


class Drainable(Protocol):
    """What the lifecycle ends: the gateway."""

    def begin_draining(self) -> None:
        """Refuse new work from now on."""

    def stop_listening(self) -> None:
        """Close the data listener and its idle connections."""

    async def idle(self) -> None:
        """Wait until no request is in the house."""

    def break_off(self) -> None:
        """End every request that is still in the house with an error that says so."""

    def running(self) -> int:
        """Return how many requests are in the house."""


class Lifecycle:
    """Turns signals into the gateway's end, its reloads and its state dumps."""

    def __init__(
        self,
        gateway: Drainable,
        notifier: Notifier,
        reload: Callable[[], Awaitable[object]],
        dump_state: Callable[[], None],
    ) -> None:
        """Keep what the signals act on."""
        self._gateway = gateway
        self._notifier = notifier
        self._reload = reload
        self._dump_state = dump_state
        self._tasks = Tasks()
        self._stop = asyncio.Event()
        self._at_once = asyncio.Event()

    def install_signals(self) -> None:
        """Handle SIGTERM, SIGINT, SIGHUP and SIGUSR1 from now on."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._spawn_reload)
        loop.add_signal_handler(signal.SIGUSR1, self._dump_state)

    def remove_signals(self) -> None:
        """Give the signals back."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            loop.remove_signal_handler(number)

    def stop(self) -> None:
        """Begin the drain; a second call ends it at once."""
        if self._stop.is_set():
            _log.warning("stopping_at_once", extra={"running": self._gateway.running()})
            self._at_once.set()
            return
        self._stop.set()
        # Before the handler returns: a probe that comes after the signal must not find the gateway ready.
        self._gateway.begin_draining()
        _log.info("draining", extra={"running": self._gateway.running()})

    @property
    def stopping(self) -> bool:
        """Say whether a stop was asked for."""
        return self._stop.is_set()

    async def until_stopped(self) -> None:
        """Wait for the first stop."""
        await self._stop.wait()

    async def drain(self, delay_seconds: float, window_seconds: float) -> None:
        """Run the drain to its end; both times count from the stop.

        Returns early when a second stop comes, or when the delay is over and no request is left.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._notifier.stopping(f"draining: {self._gateway.running()} requests run")
        extending = self._tasks.spawn(self._ask_for_time(), "ask-systemd-for-time")
        try:
            await self._or_at_once(asyncio.sleep(delay_seconds))
            self._gateway.stop_listening()
            left = began + max(delay_seconds, window_seconds) - loop.time()
            await self._or_at_once(self._within(self._gateway.idle(), left))
        finally:
            extending.cancel()
        if self._gateway.running():
            _log.warning("requests_broken_off", extra={"running": self._gateway.running()})
            self._gateway.break_off()
            await self._within(self._gateway.idle(), LAST_SECONDS)

    async def close(self) -> None:
        """Stop what signals began."""
        await self._tasks.cancel_all()

    def _spawn_reload(self) -> None:
        if self.stopping:
            _log.warning("reload_ignored", extra={"cause": "the gateway drains"})
            return

        async def run() -> None:
            await self._reload()

        self._tasks.spawn(run(), "reload")

    async def _or_at_once(self, step: Awaitable[object]) -> None:
        """Wait for a step of the drain, or for the second stop."""
        tasks = {asyncio.ensure_future(step), asyncio.ensure_future(self._at_once.wait())}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    async def _within(self, step: Awaitable[object], seconds: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await step
        except TimeoutError:
            return

    async def _ask_for_time(self) -> None:
        while True:
            self._notifier.extend_timeout(EXTENSION_SECONDS)
            await asyncio.sleep(EXTENSION_SECONDS / 4)
