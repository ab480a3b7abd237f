"""A thousand clients that leave in each phase: seats and tokens come back, nothing stays, nobody else notices.

The slow runs let a hundred leave in each, on both loops; the soak lets all the thousand.
"""

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.house import QUICK, House, house, until
from fakes.leavers import BYSTANDER_TOKENS, Leaver, Measured, bystanders, leave_in_batches, nothing_left_behind, with_id
from fakes.loops import on_both_loops
from fakes.seats import FULL, PATIENT, held, until_waiting, waiting
from fakes.turnstile import Turnstile
from llmshed.emulator import Emulator
from llmshed.observability.endings import Phase
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.tokenizing.counter import ExactCounter

numbers = pytest.mark.parametrize(
    "number",
    [
        pytest.param(100, marks=pytest.mark.slow),
        pytest.param(1000, marks=[pytest.mark.soak, pytest.mark.timeout(600)]),
    ],
)

# A token every 20 ms: streams long enough to leave, and a loop that has time for all of them.
STEADY = replace(
    QUICK,
    parameters=ReplicaParameters(step_times=StepTimes(0.02, 1e-6, 0), max_concurrent_requests=512, kv_tokens=400_000),
)
ASIDE = replace(STEADY, model_id="llmshed/aside")
ROOM = "gross_ceiling_tokens = 300_000\nrelease_grace_seconds = 0.05\nmax_concurrent_sequences = 512"
KEY = {"Authorization": "Bearer right"}

LONG = {"inputs": "Hello", "parameters": {"max_new_tokens": 1000}}
SHORT = {"inputs": "Hello", "parameters": {"max_new_tokens": BYSTANDER_TOKENS}, "model": "tgi"}


@asynccontextmanager
async def busy_house(settings: str = "", pools: str = "") -> AsyncIterator[House]:
    """Run a gateway with bystanders; afterwards nothing may be left, and every bystander was served in full."""
    quiet = "[upstream]\npool_idle_seconds = 0.05\nprobe_interval_seconds = 3600\n"
    async with house(settings + quiet + pools, replicas=(STEADY,), pool=ROOM) as gate:
        await gate.post("/generate", SHORT)
        async with nothing_left_behind():
            async with bystanders(gate, SHORT) as served:
                yield gate
            await until(lambda: gate.active_tokens() == 0)
        assert gate.daemon.gateway.driver.live == 0
        assert gate.daemon.gateway.driver.charged == 0
        assert gate.daemon.gateway.driver.violations() == ()
        assert all(one.replica.engine.check() == () for one in gate.replicas)
        assert len(served) >= 3
        assert set(served) == {BYSTANDER_TOKENS}


def in_phase(gate: House, phase: Phase) -> int:
    """Return how many requests are in a phase, bystanders included."""
    visits = gate.daemon.gateway._visits
    return sum((visit.relayed.phase if visit.relaying else visit.phase) is phase for visit in visits)


def assert_all_left(measured: Measured, lines: list[dict[str, Any]], number: int, termination: str) -> None:
    """Report the figures; the bound is wide, since the clients, the gateway and the replica share one busy loop.

    It is one of the loop's turns: other work on the machine adds none.
    """
    print(f"\n{termination}: {measured}")  # noqa: T201 - figures for whoever runs it with -s
    assert [line["termination"] for line in lines] == [termination] * number
    assert {line["ending"] for line in lines} == {"cancelled"}
    assert max(measured.turned) < 1.0


@numbers
@on_both_loops
async def test_while_the_body_is_read(number: int) -> None:
    async with busy_house() as gate:

        async def reading(batch: list[Leaver]) -> None:
            await until(lambda: in_phase(gate, Phase.BODY) >= len(batch))

        left = await leave_in_batches(gate, number, lambda name: with_id("/generate", LONG, name)[:-10], reading)
        assert_all_left(*left, number, "CB")


@numbers
@on_both_loops
async def test_at_the_door_before_and_while_the_key_is_checked(tmp_path: Path, number: int) -> None:
    """Half a head, a wrong key, a right one: they leave without waiting, wherever that catches the gateway."""
    keys = tmp_path / "keys"
    keys.write_text(f"sha256:{hashlib.sha256(b'right').hexdigest()}\n")
    keys.chmod(0o600)
    tenant = f'[[tenants]]\nname = "acme"\nkeys_file = "{keys}"\n'
    async with house(tenant, replicas=(STEADY,), pool=ROOM) as gate:
        assert (await gate.post("/generate", SHORT, KEY)).status == 200
        await until(lambda: gate.active_tokens() == 0)
        async with nothing_left_behind():
            whole = with_id("/generate", LONG, "x")
            heads = [whole[:60], whole, whole.replace(b"Host: x", b"Host: x\r\nAuthorization: Bearer right")]
            for first in range(0, number, 50):
                await asyncio.gather(*(leave_at_once(gate, heads[n % 3], n) for n in range(first, first + 50)))
                assert (await gate.post("/generate", SHORT, KEY)).status == 200
            await until(lambda: gate.daemon.gateway.running() == 0 and gate.active_tokens() == 0)
            assert gate.daemon.gateway.driver.charged == 0


async def leave_at_once(gate: House, sent: bytes, manner: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
    leaver = Leaver(reader, writer, "")
    writer.write(sent)
    leaver.leave(manner)
    await leaver.gone()


@pytest.fixture
def held_counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Hold the counts of prompts that begin with `leaver` until the event is set."""
    may_count = threading.Event()
    steps = ExactCounter.steps

    def held(self: ExactCounter, prompt: Any, enough_tokens: int | None = None) -> Any:
        if getattr(prompt, "text", "").startswith("leaver"):
            may_count.wait(10)
        yield from steps(self, prompt, enough_tokens)

    monkeypatch.setattr(ExactCounter, "steps", held)
    yield may_count
    may_count.set()


@numbers
@on_both_loops
async def test_while_the_prompt_is_counted(held_counts: threading.Event, number: int) -> None:
    """Some wait for a thread, some are in one; bystanders' prompts are small enough to need none."""
    body = {**LONG, "inputs": "leaver " * 1000}
    async with busy_house() as gate:

        async def counting(batch: list[Leaver]) -> None:
            await until(lambda: in_phase(gate, Phase.COUNTING) >= len(batch))

        async def count_on() -> None:
            held_counts.set()
            await until(lambda: gate.daemon.gateway.counting.small_queue_bytes == 0)
            held_counts.clear()

        left = await leave_in_batches(gate, number, lambda name: with_id("/generate", body, name), counting, count_on)
        assert_all_left(*left, number, "CT")


@asynccontextmanager
async def house_with_a_replica_aside(
    settings: str = "", room: str = ROOM
) -> AsyncIterator[tuple[House, Emulator, Turnstile]]:
    """Run a busy house with a second pool, `aside`, for those who leave; the bystanders are served by the first."""
    aside = Emulator(ASIDE)
    async with Turnstile(await aside.start()) as turnstile:
        replica = f'[[pools.replicas]]\nname = "aside"\nurl = "{turnstile.url}"\n'
        pool = f'[[pools]]\nname = "aside"\ntokenizer = "embedded"\naliases = ["aside"]\n{room}\n{replica}'
        async with busy_house(settings, pool) as gate:
            gate.replicas.append(aside)
            await until(lambda: gate.daemon.gateway.fleet.specs("aside"))
            yield gate, aside, turnstile
            await turnstile.open()
            aside.replica.engine.stall(0)
    await aside.stop()


@numbers
@on_both_loops
async def test_while_they_wait_for_room(number: int) -> None:
    async with house_with_a_replica_aside(PATIENT, f"{FULL}release_grace_seconds = 0.05") as (gate, aside, _):

        async def queued(batch: list[Leaver]) -> None:
            await until_waiting(gate, len(batch))

        async with held(gate, model="aside"):
            body = {**SHORT, "model": "aside"}
            paths = ("/generate_stream", "/generate")
            left = await leave_in_batches(
                gate, number, lambda name: with_id(paths[int(name[-1]) % 2], body, name), queued
            )
            assert waiting(gate) == 0
            assert aside.replica.received_total - aside.replica.finished_total == 1
        assert_all_left(*left, number, "CQ")


@numbers
@on_both_loops
async def test_while_a_connection_to_the_replica_is_made(number: int) -> None:
    async with house_with_a_replica_aside() as (gate, _, turnstile):
        await asyncio.sleep(0.1)  # the connections that met the replica are given up by then
        await turnstile.shut()

        async def connecting(batch: list[Leaver]) -> None:
            await until(lambda: in_phase(gate, Phase.SENDING) >= len(batch))

        body = {**LONG, "model": "aside"}
        left = await leave_in_batches(gate, number, lambda name: with_id("/generate_stream", body, name), connecting)
        assert_all_left(*left, number, "CS")


@numbers
@on_both_loops
async def test_before_the_first_byte(number: int) -> None:
    async with house_with_a_replica_aside() as (gate, aside, _):
        aside.replica.engine.stall(float("inf"))

        async def sent(batch: list[Leaver]) -> None:
            await until(lambda: len(aside.replica.live) >= len(batch))

        body = {**LONG, "model": "aside"}
        paths = ("/generate_stream", "/generate")
        left = await leave_in_batches(
            gate, number, lambda name: with_id(paths[int(name[-1]) % 2], body, name), sent, at=aside
        )
        assert_all_left(*left, number, "CP")


@numbers
@on_both_loops
async def test_in_the_middle_of_a_stream(number: int) -> None:
    async with busy_house() as gate:

        async def streaming(batch: list[Leaver]) -> None:
            await asyncio.gather(*(leaver.reader.readuntil(b"data:") for leaver in batch))

        left = await leave_in_batches(
            gate, number, lambda name: with_id("/generate_stream", LONG, name), streaming, at=gate.replicas[0]
        )
        assert_all_left(*left, number, "CD")
