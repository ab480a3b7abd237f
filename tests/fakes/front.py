"""The smallest gateway: a listener, the driver and the relay before scripted replicas, without anything around them."""

import asyncio
import contextlib
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import aiohttp
import orjson
from aiohttp import web

from fakes.door import door, request, spec
from fakes.loops import AsyncTest, on_both_loops
from llmshed.admission.request import Request
from llmshed.admission.verdict import Verdict
from llmshed.clock import SystemClock
from llmshed.config.server import UpstreamSettings
from llmshed.engines.base import Route
from llmshed.engines.registry import engine
from llmshed.gateway.contract.refusals import ContractWriter
from llmshed.gateway.door.unread import PatientHandler
from llmshed.gateway.driver import Driver
from llmshed.gateway.relay.by_scheme import UpstreamByScheme
from llmshed.gateway.relay.job import RelayJob
from llmshed.gateway.relay.outcome import RelayOutcome
from llmshed.gateway.relay.relay import Relay
from llmshed.gateway.relay.timeouts import LaneTimeouts
from llmshed.gateway.ticket import Ticket
from llmshed.observability.metrics import UpstreamErrorKind

PATIENT = LaneTimeouts(20.0, 20.0, 0.1)


@dataclass(slots=True)
class Heard:
    """What the relay told of the replicas, in order."""

    signs: list[tuple[str, str]] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    pieces: int = 0
    counts: list[tuple[str, int, int]] = field(default_factory=list)

    def sent(self, replica: str, request: Request, output_ceiling_tokens: int | None) -> None:
        assert replica
        assert output_ceiling_tokens
        self.running.add(request.key)

    def heard(self, replica: str, key: int) -> None:
        assert replica
        assert key in self.running
        self.pieces += 1

    def ended(self, replica: str, key: int) -> None:
        assert replica
        self.running.discard(key)

    def answered(self, replica: str) -> None:
        self.signs.append(("answered", replica))

    def counted(self, replica: str, counted_tokens: int, engine_tokens: int) -> None:
        self.counts.append((replica, counted_tokens, engine_tokens))

    def failed(self, replica: str, kind: UpstreamErrorKind) -> None:
        self.signs.append((kind.value, replica))


class Front:
    """Serves any route of TGI for requests of 10 input tokens; a context manager."""

    def __init__(self) -> None:
        self.urls: dict[str, str] = {}
        self.timeouts = PATIENT
        self.deadline_seconds: float | None = None
        self.first_token_seconds: float | None = None
        self.outcomes: list[RelayOutcome] = []
        self.heard = Heard()
        self.ended = asyncio.Event()
        self.driver = Driver(door(*(spec(name, release_grace_seconds=0.01) for name in ("r1", "r2"))), SystemClock())
        self.upstream = UpstreamByScheme(UpstreamSettings())
        self.write_stall_seconds = 20.0
        contract = ContractWriter(lambda: 0.5, 1.0, 60.0)
        self.relay = Relay(self.upstream, contract, SystemClock(), self.urls.__getitem__, self.heard)
        self._engine = engine("tgi", "3.3.5")

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._web = web.Server(self._handle, handler_cancellation=True)
        self._server = await loop.create_server(self._connection, "127.0.0.1", 0, backlog=512)
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._session.close()
        self._server.close()
        await self._web.shutdown(1.0)
        await self.upstream.close()
        self.driver.close()
        assert self.driver.violations() == ()
        assert self.driver.live == 0
        assert self.heard.running == set()

    @property
    def port(self) -> int:
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def post(self, path: str, body: object, headers: dict[str, str] | None = None) -> "Got":
        """Post as a client does and read the answer to its end."""
        async with self._session.post(f"http://127.0.0.1:{self.port}{path}", json=body, headers=headers) as response:
            return Got(response.status, response.headers.copy(), await response.read())

    async def leave_after(self, path: str, body: object, condition: Callable[[bytes], bool]) -> None:
        """Post, read until the condition holds for what came, and cut the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        content = orjson.dumps(body)
        writer.write(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
        got = b""
        while not condition(got):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.005):
                    got += await reader.read(65_536)
        writer.transport.abort()

    async def outcome(self) -> RelayOutcome:
        """Return the outcome of the one request that was served, once it has ended."""
        async with asyncio.timeout(30):
            await self.ended.wait()
        (outcome,) = self.outcomes
        return outcome

    def _connection(self) -> PatientHandler:
        loop = asyncio.get_running_loop()
        return PatientHandler(self._web, loop=loop, write_stall_seconds=self.write_stall_seconds, access_log=None)

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        route = Route(http.path)
        call = self._engine.read_call(route, orjson.loads(await http.read()))
        asked = request(self.driver.new_key(), 10, 50, streamed=call.streamed)
        ticket = await self.driver.admit(asked)
        assert isinstance(ticket, Ticket)
        outcome = RelayOutcome()
        self.outcomes.append(outcome)
        # After its admission, since a core that foresees that it comes too late would refuse it.
        now = SystemClock().now()
        asked = replace(
            asked,
            arrived_at=now,
            deadline=None if self.deadline_seconds is None else now + self.deadline_seconds,
            first_token_deadline=None if self.first_token_seconds is None else now + self.first_token_seconds,
        )

        def headers(verdict: Verdict) -> dict[str, str]:
            return {"x-llmshed-replica": str(verdict.replica)}

        job = RelayJob(http, asked, call, ticket, self._engine, self.timeouts, headers, "req_1")
        try:
            return await self.relay.serve(job, outcome)
        finally:
            self.ended.set()


@dataclass(frozen=True, slots=True)
class Got:
    """An answer as a client read it."""

    status: int
    headers: Any
    body: bytes

    @property
    def reason(self) -> str | None:
        told: str | None = self.headers.get("x-llmshed-reason")
        return told

    def json(self) -> Any:
        return orjson.loads(self.body)


def with_front(test: AsyncTest) -> Callable[..., None]:
    """Give a test a front, on both loops."""

    @functools.wraps(test)
    async def opened(**named: Any) -> None:
        async with Front() as front:
            await test(front=front, **named)

    others = [parameter for parameter in inspect.signature(test).parameters.values() if parameter.name != "front"]
    opened.__signature__ = inspect.Signature(others)  # type: ignore[attr-defined]  # pytest reads it
    return on_both_loops(opened)
