"""Runs the clients of one environment against gateways in given states, and tells where the table is wrong."""

import asyncio
import signal
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp

from fakes.clients import Environment, Job, Report
from fakes.clients_states import State, write_key
from fakes.clients_table import CLIENTS, Client, Told
from fakes.house import house
from fakes.programs import Served, serve, simulate

NOWHERE = "http://127.0.0.1:9"
"""Asked first, so that a client's slow imports are over before anybody is refused."""
WAKES_EARLY_SECONDS = 0.02
"""Clients wait by the monotonic clock, decision lines carry the wall clock."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One client in one state: what it reported, and the decision lines of its tries."""

    state: State
    row: Client
    job: Job
    report: Report
    lines: Sequence[dict[str, Any]]

    @property
    def reasons(self) -> list[str]:
        """Return why each of its tries was refused."""
        return [line["reason"] for line in self.lines]

    def wrong(self) -> Iterator[str]:
        """Yield what the table says otherwise."""
        told = self.row.tries.get(self.state.told, 1)
        if len(self.lines) != told:
            yield f"sent {len(self.lines)} requests, not {told}"
        if statuses := {line["status"] for line in self.lines} - {self.state.http_status}:
            yield f"was answered {statuses}"
        if self.reasons[:1] != [self.state.reason]:
            yield f"was refused first for {self.reasons}"
        if self.state.told is Told.LATER and self.row.obeys:
            yield from self._impatient()
        if self.report.raised is None:
            yield f"raised nothing and read {self.report.text!r}"
            return
        expected = self.row.raised(self.state.reason, self.state.http_status)
        if self.report.raised != expected:
            yield f"raised {self.report.raised}, not {expected}"
        yield from self._untold()

    def _impatient(self) -> Iterator[str]:
        for line, after in pairwise(self.lines):
            came_after = after["time_seconds"] - line["time_seconds"] - line["total_seconds"]
            if came_after < line["retry_after_seconds"] - WAKES_EARLY_SECONDS:
                yield f"was told {line['retry_after_seconds']:.3f} s and came after {came_after:.3f} s"

    def _untold(self) -> Iterator[str]:
        # A repeat may be refused for another reason: what made the first one wait in vain is learnt.
        words = [f"reason={self.reasons[-1] if self.reasons else self.state.reason}", f"request_id={self.job.id}"]
        if self.state.limits:
            words.append("Limits: ")
        if missing := [word for word in words if word not in self.report.says]:
            yield f"does not say {missing}: {self.report.says}"


async def cells_of(environment: Environment, states: Sequence[State], place: Path) -> list[Cell]:
    """Bring a gateway into each state and let every client of the environment meet all of them at once."""
    asked: list[tuple[State, Client, Job]] = []
    async with AsyncExitStack() as stack:
        client = stack.enter_context(environment.client())
        rows = [row for row in CLIENTS if environment in row.environments]
        await asyncio.to_thread(client.ask, [Job("nobody", next(iter(row.asks)), NOWHERE) for row in rows])
        gates = []
        for number, state in enumerate(states):
            folder = place / str(number)
            write_key(folder)
            gate = await stack.enter_async_context(state.opened(folder))
            gates.append(gate)
            for row in rows:
                if state.endless and row.sits_out:
                    continue
                for asks, openai in row.asks.items():
                    if state.meets(asks, openai=openai):
                        name = f"{len(asked)}-{asks}"
                        fields = {"prompt": "Hello", **state.asked}
                        fields["prompt"] += f" {name}"  # so that nobody passes for a repeat of another
                        asked.append((state, row, Job(name, asks, gate.data, options=row.options, **fields)))
        reports = await asyncio.to_thread(client.ask, [job for _, _, job in asked])
        lines: dict[str, list[dict[str, Any]]] = {job.id: [] for _, _, job in asked}
        for gate in gates:
            for line in gate.decisions:
                lines.get(line["request_id"], []).append(line)
    return [
        Cell(state, row, job, report, lines[job.id]) for (state, row, job), report in zip(asked, reports, strict=True)
    ]


def wrong(cells: Sequence[Cell]) -> list[str]:
    """Return what the table says otherwise than it was seen, one line for each."""
    return [
        f"{cell.row.name}, {cell.job.asks}, {cell.state.reason} ({cell.state.told.value}): {what}"
        for cell in cells
        for what in cell.wrong()
    ]


async def served(environment: Environment) -> list[Report]:
    """Let every client of the environment ask a gateway that has room, each in all its ways."""
    asks = {name for row in CLIENTS if environment in row.environments for name in row.asks}
    async with house() as gate:
        with environment.client() as client:
            jobs = [Job(f"served-{name}", name, gate.data, tokens=5) for name in sorted(asks)]
            return await asyncio.to_thread(client.ask, jobs)


async def broken_streams(environment: Environment, place: Path) -> list[Report]:
    """Let every client that streams read of a gateway whose process is then killed, and return what they say."""
    rows = [row for row in CLIENTS if environment in row.environments and not row.options]
    asks = [asks for row in rows for asks in row.asks if "stream" in asks]
    replica = ("--output-mean", "ceiling", "--step-seconds", "0.02", "--max-concurrent-requests", "64")
    async with (
        simulate(*replica) as url,
        serve(place, f'[[pools]]\nreplicas = [{{ name = "r1", url = "{url}" }}]') as gateway,
    ):
        with environment.client() as client:
            jobs = [Job(f"cut-{name}", name, gateway.data, tokens=900) for name in asks]
            asking = asyncio.ensure_future(asyncio.to_thread(client.ask, jobs))
            while await _running(gateway) < len(jobs):  # noqa: ASYNC110 - what is waited for is another process
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)  # so that each has read some of its stream
            gateway.program.signal(signal.SIGKILL)
            return await asking


async def _running(gateway: Served) -> float:
    async with aiohttp.ClientSession() as session, session.get(f"{gateway.admin}/metrics") as page:
        lines = (await page.text()).splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("llmshed_active_sequences{"))
