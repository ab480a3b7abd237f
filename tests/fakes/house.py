"""A whole gateway in this process, on free ports, before emulated replicas: `llmshed serve` without its signals."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from fakes.front import Got
from llmshed.clock import Clock, SystemClock
from llmshed.config.loading import load_config
from llmshed.emulator import Emulator, EmulatorSettings
from llmshed.gateway.daemon.assembly import Reports, read_inputs
from llmshed.gateway.daemon.daemon import Daemon, Surroundings, listening
from llmshed.gateway.daemon.notify import Notifier
from llmshed.gateway.daemon.reload import Inputs
from llmshed.observability.decisions import DecisionLog
from llmshed.observability.goodput import objectives_of
from llmshed.observability.metrics import Metrics
from llmshed.observability.observer import Observer
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters

QUICK = EmulatorSettings(
    parameters=ReplicaParameters(step_times=StepTimes(0.002, 1e-6, 1e-6)), output_mean_tokens=None, drain_seconds=0.1
)
"""A replica that answers a token every 2 ms and runs every answer to its ceiling."""

JSON = {"Content-Type": "application/json"}


@dataclass(slots=True)
class House:
    """A running gateway and a client at its doors; `toml` may be changed before a reload."""

    daemon: Daemon
    session: aiohttp.ClientSession
    toml: str
    replicas: list[Emulator]
    urls: list[str]
    decisions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def data(self) -> str:
        return self.daemon.gateway.data_url

    @property
    def admin(self) -> str:
        return self.daemon.gateway.admin_url

    @property
    def port(self) -> int:
        return int(self.data.rpartition(":")[2])

    async def ask(self, method: str, path: str, *, admin: bool = False, **request: Any) -> Got:
        """Send one request and read its answer to the end."""
        url = (self.admin if admin else self.data) + path
        async with self.session.request(method, url, **request) as response:
            return Got(response.status, response.headers.copy(), await response.read())

    async def post(self, path: str, body: object, headers: dict[str, str] | None = None) -> Got:
        return await self.ask("POST", path, json=body, headers=headers)

    async def decision(self, where: Callable[[dict[str, Any]], bool] = bool) -> dict[str, Any]:
        """Wait for the first decision line that fits."""
        line: dict[str, Any] = await until(lambda: next((line for line in self.decisions if where(line)), None))
        return line

    def active_tokens(self) -> int:
        return sum(replica.equation.active_tokens for replica in self.daemon.gateway.driver.state().replicas)


async def until(condition: Callable[[], Any]) -> Any:
    """Wait until a condition holds, and return what it returned."""
    async with asyncio.timeout(30):
        while not (found := condition()):  # noqa: ASYNC110 - what is waited for is on the other side of a socket
            await asyncio.sleep(0.002)
    return found


@asynccontextmanager
async def house(
    settings: str = "",
    *,
    replicas: tuple[EmulatorSettings, ...] = (QUICK,),
    pool: str = "",
    ready: bool = True,
    clock: Clock | None = None,
) -> AsyncIterator[House]:
    """Run a gateway; `settings` stands before, `pool` inside the `[[pools]]` of its configuration.

    All of it goes by `clock`, the machine's if there is none, and the client has no timeout of its own. Afterwards no
    ledger may hold anything and no request may be in the house.
    """
    async with contextlib.AsyncExitStack() as stack:
        clock = SystemClock() if clock is None else clock
        emulators = [Emulator(one, clock) for one in replicas]
        urls = [await emulator.start() for emulator in emulators]
        for emulator in emulators:
            stack.push_async_callback(emulator.stop)
        tables = "".join(f'[[pools.replicas]]\nname = "r{n}"\nurl = "{url}"\n' for n, url in enumerate(urls, 1))
        session = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)))
        lines: list[dict[str, Any]] = []
        holder: list[House] = []

        def toml() -> str:
            return f"{holder[0].toml if holder else settings}\n[[pools]]\n{pool}\n{tables}"

        ports = {"server.listen": "127.0.0.1:0", "server.admin_listen": "127.0.0.1:0"}

        def read() -> Inputs:
            return read_inputs(load_config(toml(), "llmshed.toml", {}, ports).config)

        inputs = read()
        log = DecisionLog(lambda line: lines.append(orjson.loads(line)), inputs.config.server.decision_history)
        reports = Reports(Observer(Metrics(), log, objectives_of(inputs.config.lanes)), log, lambda _: None)
        surroundings = Surroundings(reports, read, Notifier(None), clock)
        daemon = await stack.enter_async_context(listening(inputs, surroundings))
        daemon.begin(inputs)
        if ready:
            async with asyncio.timeout(30):
                await daemon.gateway.fleet.until_serving()
        running = House(daemon, session, settings, emulators, urls, lines)
        holder.append(running)
        yield running
        await session.close()
        await until(lambda: daemon.gateway.running() == 0 and running.active_tokens() == 0)
        assert daemon.gateway.driver.violations() == ()


@asynccontextmanager
async def raw(house: House) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a plain connection to the data listener."""
    reader, writer = await asyncio.open_connection("127.0.0.1", house.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def request_bytes(path: str, body: object, *more: str) -> bytes:
    """Return a POST as it stands on the wire."""
    content = orjson.dumps(body)
    head = [
        f"POST {path} HTTP/1.1",
        "Host: x",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        *more,
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + content
