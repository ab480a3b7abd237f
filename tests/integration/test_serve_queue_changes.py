"""What changes while requests wait: the configuration, the replicas, and whether the gateway goes on at all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from fakes.front import Got
from fakes.house import House, until
from fakes.seats import FULL, PATIENT, SMALL, STEADY, held, small_house, until_waiting, waiting
from llmshed.admission.events import BudgetChanged
from llmshed.emulator import Emulator

CHAT = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}
CHAT_STREAM = {**CHAT, "stream": True}
LESS = """
[lanes.interactive]
queue_requests = 1
max_residence_seconds = 0.7
[lanes.bulk]
queue_requests = 0
"""

pytestmark = pytest.mark.slow


@asynccontextmanager
async def aside_from(gate: House) -> AsyncIterator[Emulator]:
    """Add a second pool of another model, `aside`, by a reload."""
    aside = Emulator(replace(STEADY, model_id="llmshed/aside"))
    replica = f'[[pools.replicas]]\nname = "aside"\nurl = "{await aside.start()}"\n'
    gate.toml += f'[[pools]]\nname = "aside"\ntokenizer = "embedded"\naliases = ["aside"]\n{FULL}{replica}'
    assert (await gate.ask("POST", "/admin/reload", admin=True)).status == 200
    await until(lambda: gate.daemon.gateway.fleet.specs("aside"))
    try:
        yield aside
    finally:
        await aside.stop()


def queued_tokens(gate: House) -> dict[str, int]:
    return {replica.name: replica.equation.queued_tokens for replica in gate.daemon.gateway.driver.state().replicas}


async def test_a_reload_leaves_those_who_wait_with_the_bounds_that_they_came_under() -> None:
    async with small_house() as gate:
        async with held(gate):
            asked = [asyncio.ensure_future(gate.post("/generate", SMALL)) for _ in range(3)]
            await until_waiting(gate, 3)
            old = gate.daemon.gateway.snapshot.version
            gate.toml = gate.toml.replace(PATIENT, LESS)
            assert (await gate.ask("POST", "/admin/reload", admin=True)).status == 200
            new = await gate.post("/generate", SMALL)
            assert (new.status, new.reason) == (429, "queue_full")
            assert new.headers["x-llmshed-lane"] == "interactive"
            await asyncio.sleep(0.8)
            assert waiting(gate) == 3
            assert gate.daemon.gateway.driver.violations() == ()
        assert [(await task).status for task in asked] == [200] * 3
        served = [line for line in gate.decisions if line["ending"] == "finished"]
        assert {line["config_version"] for line in served} == {old}


async def test_a_reload_that_takes_the_pool_away_answers_those_who_wait_and_lets_run_what_runs() -> None:
    async with small_house() as gate, aside_from(gate) as aside:
        without = gate.toml.partition("[[pools]]")[0]
        async with held(gate, model="aside"):
            bodies = ({**CHAT, "model": "aside"}, {**CHAT_STREAM, "model": "aside"})
            asked = [asyncio.ensure_future(gate.post("/v1/chat/completions", body)) for body in bodies]
            await until_waiting(gate, 2)
            gate.toml = without
            assert (await gate.ask("POST", "/admin/reload", admin=True)).status == 200
            answers = await asyncio.gather(*asked)
            assert [(got.status, got.reason) for got in answers] == [(503, "no_replica")] * 2
            assert all(int(got.headers["Retry-After"]) >= 1 for got in answers)
            assert waiting(gate) == 0
            assert aside.replica.live  # who was being served still is
            assert gate.active_tokens() == 7169
            assert gate.daemon.gateway.driver.violations() == ()
        await until(lambda: len(gate.daemon.gateway.driver.state().replicas) == 1)


async def test_those_who_wait_for_a_replica_that_dies_are_served_by_the_other_one() -> None:
    async with small_house(replicas=(STEADY, STEADY)) as gate:
        async with held(gate), held(gate):
            asked = [asyncio.ensure_future(gate.post("/generate", SMALL)) for _ in range(6)]
            await until_waiting(gate, 6)
            preferred = max(queued_tokens(gate), key=queued_tokens(gate).__getitem__)
            gate.daemon.gateway.fleet.went_down(preferred, "it died")
            (other,) = {"r1", "r2"} - {preferred}
            assert queued_tokens(gate) == {preferred: 0, other: 18}
            assert not any(task.done() for task in asked)
        answers = [await task for task in asked]
        assert [(got.status, got.headers["x-llmshed-replica"]) for got in answers] == [(200, other)] * 6


async def test_when_the_last_replica_dies_those_who_wait_are_told_so_at_once() -> None:
    async with small_house() as gate:
        async with held(gate):
            asked = [
                asyncio.ensure_future(gate.post(path, body))
                for path, body in (("/generate", SMALL), ("/v1/chat/completions", CHAT_STREAM))
            ]
            await until_waiting(gate, 2)
            gate.daemon.gateway.fleet.went_down("r1", "it died")
            answers = await asyncio.gather(*asked)
            assert [(got.status, got.reason) for got in answers] == [(503, "no_replica")] * 2
            assert all(int(got.headers["Retry-After"]) >= 1 for got in answers)
            assert waiting(gate) == 0
        assert [line["termination"] for line in gate.decisions if line["status"] == 503] == ["GQ"] * 2


async def test_a_replica_that_a_reload_takes_from_who_was_just_given_it_is_no_fault_of_the_gateway() -> None:
    """Who waits learns of its dispatch a turn of the loop later; the reload comes in between."""
    async with small_house() as gate, aside_from(gate):
        driver, config = gate.daemon.gateway.driver, gate.daemon.gateway.snapshot.config
        async with held(gate, model="aside"):
            asked = asyncio.ensure_future(gate.post("/v1/chat/completions", {**CHAT, "model": "aside"}))
            await until_waiting(gate, 1)
            (spec,) = gate.daemon.gateway.fleet.specs("aside")
            driver.tell(BudgetChanged("aside", replace(spec.budget, gross_ceiling_tokens=9_000)))
            assert waiting(gate) == 0
            gate.daemon.gateway.fleet.reconcile(config.model_copy(update={"pools": config.pools[1:]}))
            got = await asked
            assert got.status == 503
            assert int(got.headers["Retry-After"]) >= 1


@asynccontextmanager
async def waiting_for_the_other_replica(path: str) -> AsyncIterator[tuple[House, asyncio.Task[Got], AsyncExitStack]]:
    """Send a request to a replica that takes no connection any more, so that it waits for the one that is full."""
    async with small_house(replicas=(STEADY, STEADY)) as gate, AsyncExitStack() as streams:
        one, two = [await streams.enter_async_context(held(gate)) for _ in range(2)]
        await one.aclose()
        await until(lambda: gate.active_tokens() == 7169)
        lost = next(n for n, replica in enumerate(gate.replicas) if not replica.replica.live)
        await gate.replicas[lost].stop()
        asked = asyncio.ensure_future(gate.post(path, SMALL))
        await until_waiting(gate, 1)
        assert not asked.done()
        yield gate, asked, two


@pytest.mark.parametrize("path", ["/generate", "/generate_stream"])
async def test_who_waits_anew_because_its_replica_was_lost_is_served(path: str) -> None:
    async with waiting_for_the_other_replica(path) as (gate, asked, streams):
        await streams.aclose()
        assert (await asked).status == 200
        assert gate.daemon.gateway.driver.violations() == ()


async def test_who_waits_anew_and_leaves_is_out_of_the_queue() -> None:
    async with waiting_for_the_other_replica("/generate") as (gate, asked, _):
        asked.cancel()
        await until_waiting(gate, 0)
        line = await gate.decision(lambda line: line["asked_output_tokens"] == 2)
        assert (line["ending"], line["termination"]) == ("cancelled", "CQ")


async def test_who_waits_anew_when_the_drain_ends_is_told_so() -> None:
    async with waiting_for_the_other_replica("/generate") as (gate, asked, _):
        gate.daemon.gateway.begin_draining()
        assert waiting(gate) == 1
        gate.daemon.gateway.break_off()
        got = await asked
        assert (got.status, got.reason, got.headers["x-llmshed-lane"]) == (503, "draining", "interactive")
        assert waiting(gate) == 0
        line = await gate.decision(lambda line: line["asked_output_tokens"] == 2)
        assert (line["ending"], line["termination"], line["reason"]) == ("evicted", "GQ", "draining")
