"""States of a running gateway in which it refuses or fails whoever comes, one for each thing that a client can meet."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from fakes.clients_table import Told
from fakes.house import House, house, until
from fakes.seats import PATIENT, SMALL, held, small_house, stuck, until_waiting
from llmshed.admission.reasons import Reason
from llmshed.gateway.counting.pool import BacklogError

KEY = "sk-of-acme"
SEATS = "max_concurrent_sequences = 8\n"
STEADY_WAITS = "admission.retry_jitter_ratio = 0\n"
STANDING = "first_byte_timeout_seconds = 600\n"
"""Of the lane: longer than any test, so that what stands still in the engine keeps its seat."""
KEPT_STANDING = f"{STEADY_WAITS}[lanes.interactive]\n{STANDING}"
NOBODY_WAITS = f"{KEPT_STANDING}queue_requests = 0\n"
WAITED_OUT = f"{STEADY_WAITS}{PATIENT}{STANDING}"

Opened = Callable[[Path], AbstractAsyncContextManager[House]]


@dataclass(frozen=True, slots=True)
class State:
    """One refusal, and how a gateway is brought to it.

    Args:
        reason: which refusal.
        told: what it tells of trying again.
        opened: brings a gateway into the state, with a folder for its files.
        asked: fields of the job that meets it.
        limits: whether accepted maximums are told.
        status: of the answer; 200 for a stream that fails.
        only_openai, only_streams: which asks meet it, where not all do.
        not_by: asks that cannot bring it about.
        endless: whether the wait is too long to be sat out.
    """

    reason: Reason
    told: Told
    opened: Opened
    asked: Mapping[str, Any] = field(default_factory=dict)
    limits: bool = True
    status: int = 0
    only_openai: bool = False
    only_streams: bool = False
    not_by: frozenset[str] = frozenset()
    endless: bool = False

    @property
    def http_status(self) -> int:
        return self.status or self.reason.row.status

    def meets(self, asks: str, *, openai: bool) -> bool:
        """Say whether a way of asking can meet this refusal."""
        if asks in self.not_by:
            return False
        return (openai or not self.only_openai) and ("stream" in asks or not self.only_streams)


def opened(settings: str = "", pool: str = "", then: Callable[[House], Awaitable[object]] | None = None) -> Opened:
    """Return how a gateway with one quick replica is brought into a state, by its configuration and by what is done."""

    @asynccontextmanager
    async def open_in(place: Path) -> AsyncIterator[House]:
        shown = settings.replace("PLACE", str(place))
        async with house(shown, pool=f"release_grace_seconds = 0.05\n{pool}") as gate:
            if then is not None:
                await then(gate)
            yield gate

    return open_in


def keyed(more: str) -> str:
    """Return a tenant with its key, whose file stands in the state's folder."""
    return f'[[tenants]]\nname = "acme"\nkeys_file = "PLACE/keys"\n{more}\n'


def write_key(place: Path) -> None:
    """Write the key file that `keyed` names."""
    place.mkdir(exist_ok=True)
    keys = place / "keys"
    keys.write_text(f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}\n")
    keys.chmod(0o600)


def filled(settings: str, pool: str, seats: int, body: Mapping[str, Any], waiters: int = 0) -> Opened:
    """Return a gateway whose replica stands still with so many requests inside, and so many waiting."""

    @asynccontextmanager
    async def open_in(_: Path) -> AsyncIterator[House]:
        async with small_house(settings, pool) as gate, stuck(gate, seats, body):
            waiting = [asyncio.ensure_future(gate.post("/generate", SMALL)) for _ in range(waiters)]
            await until_waiting(gate, waiters)
            yield gate
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    return open_in


@asynccontextmanager
async def _full_quota(place: Path) -> AsyncIterator[House]:
    """Hold the only seat that a tenant has."""
    settings = f"{STEADY_WAITS}lanes.interactive.{STANDING}" + keyed("max_concurrent_requests = 1")
    async with opened(settings)(place) as gate:
        gate.session.headers["Authorization"] = f"Bearer {KEY}"
        async with stuck(gate, 1):
            yield gate


@asynccontextmanager
async def _held_for_minutes(_: Path) -> AsyncIterator[House]:
    async with small_house(STEADY_WAITS) as gate, held(gate):
        yield gate


@asynccontextmanager
async def _starting(_: Path) -> AsyncIterator[House]:
    nowhere = 'replicas = [{ name = "gone", url = "http://127.0.0.1:9" }]'
    async with house(STEADY_WAITS, replicas=(), pool=nowhere, ready=False) as gate:
        yield gate


@asynccontextmanager
async def _without_tokenizer(_: Path) -> AsyncIterator[House]:
    async with house(STEADY_WAITS, pool='tokenizer = "/nowhere"\nmodel = "tgi"', ready=False) as gate:
        await until(lambda: gate.daemon.gateway.fleet.troubles)
        yield gate


async def _drain(gate: House) -> None:
    gate.daemon.gateway.begin_draining()


async def _lose_the_replica(gate: House) -> None:
    await gate.replicas[0].stop()
    await until(lambda: not gate.daemon.gateway.driver.state().replicas[0].up)


async def _break_the_gate(gate: House) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError("a fault of our own")

    gate.daemon.gateway.driver.gate = crash  # type: ignore[method-assign,assignment]  # the driver of one test


async def _count_nothing(gate: House) -> None:
    async def full(*_: object, **__: object) -> None:
        raise BacklogError("small", 8_000_000, 8_388_608, 1.0)

    gate.daemon.gateway.counting.count = full  # type: ignore[method-assign,assignment]  # the pool of one test


def faulty(**fault: Any) -> Callable[[House], Awaitable[None]]:
    """Return what makes the replica meet every request with a fault."""

    async def order(gate: House) -> None:
        async with aiohttp.ClientSession() as operator, operator.post(f"{gate.urls[0]}/_simulate/faults", json=fault):
            pass

    return order


LONG = "sea " * 9000
PROBING = f"{STEADY_WAITS}[upstream]\nprobe_interval_seconds = 0.1\n"
REFUSED_FOR_GOOD = (
    State(Reason.MALFORMED, Told.NEVER, opened(), {"headers": {"x-llmshed-deadline-ms": "soon"}}, limits=False),
    State(Reason.UNAUTHENTICATED, Told.NEVER, opened(keyed("")), {"key": "sk-wrong"}, limits=False),
    State(
        Reason.FORBIDDEN,
        Told.NEVER,
        opened(keyed('intents = ["bulk"]\ndefault_intent = "bulk"')),
        {"key": KEY, "headers": {"x-llmshed-intent": "interactive"}},
        limits=False,
    ),
    State(
        Reason.NOT_FOUND,
        Told.NEVER,
        opened(),
        {"model": "gpt-9"},
        limits=False,
        only_openai=True,
        not_by=frozenset({"tgi_chat"}),  # it names its own model
    ),
    State(
        Reason.HEADERS_TOO_LARGE,
        Told.NEVER,
        opened(),
        {"headers": {f"x-filler-{number}": "1" for number in range(80)}},
        limits=False,
    ),
    State(Reason.CONTEXT_LIMIT, Told.NEVER, opened(), {"prompt": LONG}),
    State(Reason.OUTPUT_LIMIT, Told.NEVER, opened("lanes.bulk.max_output_tokens = 2000\n"), {"tokens": 3000}),
    State(Reason.LANE_LIMIT, Told.NEVER, opened(keyed("max_reserved_tokens = 100")), {"key": KEY, "tokens": 500}),
    State(
        Reason.BODY_TOO_LARGE,
        Told.NEVER,
        opened("server.max_body_bytes = 1000\n"),
        {"prompt": "x" * 2000},
        limits=False,
    ),
)
TOLD_TO_WAIT = (
    State(
        Reason.TOKEN_BUDGET_EXHAUSTED,
        Told.LATER,
        filled(NOBODY_WAITS, "gross_ceiling_tokens = 4_000\n", 1, {**SMALL, "inputs": "sea " * 1795}),
        {"tokens": 20},
    ),
    State(Reason.CONCURRENCY_LIMIT, Told.LATER, filled(NOBODY_WAITS, SEATS, 8, SMALL)),
    State(Reason.QUEUE_FULL, Told.LATER, filled(f"{WAITED_OUT}queue_requests = 1\n", SEATS, 8, SMALL, 1)),
    State(
        Reason.QUEUE_TIMEOUT,
        Told.LATER,
        filled(f"{KEPT_STANDING}ttft_objective_seconds = 1\nmax_residence_seconds = 1\n", SEATS, 8, SMALL),
    ),
    State(Reason.TENANT_QUOTA, Told.LATER, _full_quota, {"key": KEY}),
    State(Reason.COUNTING_BACKLOG, Told.LATER, opened(STEADY_WAITS, then=_count_nothing), limits=False),
    State(Reason.DRAINING, Told.LATER, opened(STEADY_WAITS, then=_drain)),
    State(Reason.NO_REPLICA, Told.LATER, opened(PROBING, then=_lose_the_replica)),
    State(Reason.STARTING, Told.LATER, _starting, limits=False),
    State(Reason.TOKENIZER_UNAVAILABLE, Told.LATER, _without_tokenizer, limits=False),
    State(
        Reason.DEADLINE_INFEASIBLE,
        Told.NOT_BY_ITSELF,
        filled(WAITED_OUT, SEATS, 8, SMALL),
        {"headers": {"x-llmshed-deadline-ms": "150"}},
    ),
    State(Reason.TOKEN_BUDGET_EXHAUSTED, Told.NOT_BY_ITSELF, _held_for_minutes, {"tokens": 500}, endless=True),
)
FAILED = (
    State(Reason.UPSTREAM_ERROR, Told.UNSAFE, opened(then=faulty(die_after_events=0))),
    State(
        Reason.UPSTREAM_TIMEOUT,
        Told.UNSAFE,
        opened("[lanes.interactive]\nfirst_byte_timeout_seconds = 0.3\n", then=faulty(first_byte_delay_seconds=60.0)),
    ),
    State(Reason.INTERNAL_ERROR, Told.UNSAFE, opened(then=_break_the_gate), limits=False),
    State(
        Reason.UPSTREAM_ERROR,
        Told.CUT,
        opened(then=faulty(die_after_events=3)),
        {"tokens": 10},
        status=200,
        only_streams=True,
    ),
)
STATES = (*REFUSED_FOR_GOOD, *TOLD_TO_WAIT, *FAILED)
