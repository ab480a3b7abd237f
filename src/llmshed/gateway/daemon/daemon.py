"""The daemon: opens the listeners of a gateway, serves until it is told to stop, and drains."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from llmshed.admission.reasons import Reason
from llmshed.clock import Clock
from llmshed.config.addresses import Address
from llmshed.engines.base import Dialect
from llmshed.gateway.admin.door import AdminDoor
from llmshed.gateway.admin.handlers import Administration, state_report
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.contract.request_ids import fresh_request_id
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.daemon.assembly import Assembly, Reports
from llmshed.gateway.daemon.lifecycle import LAST_SECONDS, Lifecycle
from llmshed.gateway.daemon.notify import Notifier
from llmshed.gateway.daemon.pulse import beat, measure_lag
from llmshed.gateway.daemon.reload import Inputs, Reloader, ReloadResult
from llmshed.gateway.door.door import DataDoor
from llmshed.gateway.door.listener import Listener, open_listener
from llmshed.gateway.ladders.evaluations import watch_evaluations
from llmshed.gateway.tasks import Tasks
from llmshed.observability.metrics import QueueSize

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the daemon is given by whoever starts it.

    Args:
        reports: where it tells of itself.
        read: reads the configuration and its secrets again, at a reload; blocks.
        notifier: tells systemd.
        clock: the only clock.
    """

    reports: Reports
    read: Callable[[], Inputs]
    notifier: Notifier
    clock: Clock


class Daemon:
    """A gateway whose listeners are open; `listening` makes one."""

    def __init__(self, assembly: Assembly, surroundings: Surroundings) -> None:
        """Tie a gateway to its signals."""
        self._assembly = assembly
        self.gateway = assembly.gateway
        self._surroundings = surroundings
        self._tasks = Tasks()
        self._reloader = Reloader(
            surroundings.read,
            assembly.take,
            lambda: self.gateway.snapshot,
            surroundings.reports.observer.config_refused,
        )
        self.life = Lifecycle(self.gateway, surroundings.notifier, self.reload, self._dump_state)

    async def reload(self, who: str = "signal") -> ReloadResult:
        """Take the configuration anew, as `who` asked, and tell systemd of it; one that drains keeps what it has."""
        if self.gateway.draining:
            version = self.gateway.snapshot.version
            return ReloadResult(in_force=False, config_version=version, problems=("the gateway shuts down",))
        notifier = self._surroundings.notifier
        notifier.reloading(self.gateway.clock.now())
        result = await self._reloader.reload()
        self.gateway.ladder_book.reloaded(who, in_force=result.in_force)
        notifier.ready(self._status())
        return result

    def begin(self, inputs: Inputs) -> None:
        """Meet the replicas, look after the loop and the ledgers, and tell when the gateway is ready.

        Raises:
            ProfileError: a profile cannot be used.
        """
        self._assembly.take(inputs)
        self._tasks.spawn(measure_lag(self.gateway.observer.loop_lagged), "measure-lag")
        self._tasks.spawn(beat(self._check, self._status, self._surroundings.notifier), "beat")
        self._tasks.spawn(self._tell_ready(), "tell-ready")
        watch = watch_evaluations(self.gateway.evaluations, lambda: self.gateway.policy.pools)
        self._tasks.spawn(watch, "watch-evaluations")

    async def run(self) -> None:
        """Serve until a signal, then drain."""
        self.life.install_signals()
        try:
            await self.life.until_stopped()
            server = self.gateway.snapshot.config.server
            await self.life.drain(server.drain_delay_seconds, server.drain_window_seconds)
        finally:
            self.life.remove_signals()

    async def close(self) -> None:
        """End the tasks of `begin` and of signals."""
        await self._tasks.cancel_all()
        await self.life.close()

    async def _tell_ready(self) -> None:
        await self.gateway.fleet.until_serving()
        _log.info("ready", extra={"data": self.gateway.data_url, "admin": self.gateway.admin_url})
        self._surroundings.notifier.ready(self._status())

    def _check(self) -> None:
        observer, counting = self.gateway.observer, self.gateway.counting
        observer.self_checked(self.gateway.driver.violations() + self.gateway.fleet.violations())
        observer.counting_queue(QueueSize.SMALL, counting.small_queue_bytes)
        observer.counting_queue(QueueSize.LARGE, counting.large_queue_bytes)

    def _status(self) -> str:
        state = self.gateway.driver.state()
        up = [replica.equation for replica in state.replicas if replica.up]
        active = sum(equation.active_tokens for equation in up)
        budget = sum(equation.safe_budget_tokens for equation in up)
        share = f"{100 * active // budget} %" if budget else "none"
        mode = self.gateway.snapshot.config.admission.mode
        doing = "draining" if self.gateway.draining else "observing" if mode == "observe" else "serving"
        return (
            f"{doing}: {len(up)} of {len(state.replicas)} replicas up, {state.live_requests} requests, budget {share}"
        )

    def _dump_state(self) -> None:
        _log.info("state", extra={"state": state_report(self.gateway)})


@asynccontextmanager
async def listening(inputs: Inputs, surroundings: Surroundings) -> AsyncIterator[Daemon]:
    """Open the listeners of a gateway for this configuration; replicas are met once `Daemon.begin` is called.

    Raises:
        EngineError: an address cannot be listened on.
        ConfigError: a file that is named cannot be used.
    """
    assembly = Assembly(inputs, surroundings.reports, surroundings.clock)
    gateway, server = assembly.gateway, inputs.config.server
    daemon = Daemon(assembly, surroundings)
    gateway.ladder_book.restore()  # before anybody is answered
    doors = (
        (server.listen, DataDoor(gateway)),
        (server.admin_listen, AdminDoor(Administration(gateway, daemon.reload))),
    )
    opened: list[Listener] = []
    try:
        for address, door in doors:
            opened.append(
                await open_listener(
                    Address.parse(address), door, server, _error_answer(gateway), gateway.observer.connection_displaced
                )
            )
        data, admin = opened
        gateway.listen(data, admin.url)
        yield daemon
    finally:
        await asyncio.gather(*(listener.close(LAST_SECONDS) for listener in opened))
        await daemon.close()
        await assembly.close()


def _error_answer(gateway: Gateway) -> Callable[[Reason, str], web.Response]:
    """Return the writer of errors that arose before there was a request: its path, and so its dialect, is unknown."""

    def answer(reason: Reason, message: str) -> web.Response:
        contract = gateway.snapshot.contract
        told = contract.refusal(Problem(reason, message), Dialect.NATIVE, fresh_request_id())
        return web.Response(status=told.status, headers=told.headers, body=told.body)

    return answer
