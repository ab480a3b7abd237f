"""What the handlers of one replica share."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from aiohttp import web

from llmshed.clock import Clock
from llmshed.emulator.engine import Engine
from llmshed.emulator.failures import TgiError
from llmshed.emulator.faults import Faults
from llmshed.emulator.metrics import TgiMetrics
from llmshed.emulator.settings import EmulatorSettings
from llmshed.emulator.wire import WireRules, wire_rules
from llmshed.simulation.model import ReplicaModel


@dataclass(slots=True)
class Live:
    """A generating request in progress.

    Args:
        number: counts the requests of this replica.
        request_id: the caller's `x-request-id`; None when it sent none. TGI does not look at it; tests compare it.
        route: its path.
        keys: its sequences in the engine.
    """

    number: int
    request_id: str | None
    route: str
    keys: list[int] = field(default_factory=list)


class Replica:
    """Settings, engine, metrics, faults and live requests of one emulated replica."""

    def __init__(self, settings: EmulatorSettings, clock: Clock, scheduler: ReplicaModel) -> None:
        """Start idle, on a scheduler that is."""
        self.settings = settings
        self.clock = clock
        self.wire: WireRules = wire_rules(settings.parameters.version)
        self.metrics = TgiMetrics(settings.parameters)
        self.engine = Engine(scheduler, clock, self.metrics)
        self.faults = Faults(settings.faults)
        self.live: dict[int, Live] = {}
        self.received_total = 0
        self.finished_total = 0
        self.failed_total = 0
        self.cancelled_total = 0
        self._numbers = count(1)
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def fingerprint(self) -> str:
        """Return `system_fingerprint` of OpenAI answers."""
        return f"{self.settings.parameters.version}-native"

    @property
    def created(self) -> int:
        """Return `created` of OpenAI answers: seconds since the epoch."""
        return int(self.clock.wall())

    @contextmanager
    def request(self, request: web.Request) -> Iterator[Live]:
        """Keep a generating request in `live` while it is handled; then all its sequences are let go."""
        live = Live(next(self._numbers), request.headers.get("x-request-id"), request.path)
        self.live[live.number] = live
        self._idle.clear()
        self.received_total += 1
        try:
            yield live
        except TgiError:
            self.failed_total += 1
            raise
        except BaseException:
            # The caller is gone: the handler was cancelled, or could not write.
            self.cancelled_total += 1
            raise
        else:
            self.finished_total += 1
        finally:
            del self.live[live.number]
            for key in live.keys:
                self.engine.leave(key)
            if not self.live:
                self._idle.set()

    async def until_idle(self) -> None:
        """Wait until no generating request is being handled."""
        await self._idle.wait()
