"""A house that streams fill for as long as a test wants, so that whoever else comes waits."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from fakes.front import Got
from fakes.house import QUICK, House, house, until
from llmshed.emulator import EmulatorSettings
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters

STEADY = replace(
    QUICK,
    parameters=ReplicaParameters(step_times=StepTimes(0.02, 1e-6, 0), max_concurrent_requests=512, kv_tokens=400_000),
)
"""A token every 20 ms, however many run: a stream of a thousand outlasts every test here."""
HELD_TOKENS = 7168
"""Whole chunks of 1,024, so that no overrun is added; with its one input token such a stream fills the budget."""
SMALL = {"inputs": "Hello", "parameters": {"max_new_tokens": 2}}
PATIENT = "[lanes.interactive]\nmax_output_tokens = 8000\nmax_residence_seconds = 100_000\n"
"""Longer than dozens of such streams take by what is assumed of an unknown replica."""
FULL = "gross_ceiling_tokens = 7_966\n"
"""A safe budget of 7,169 tokens."""


@asynccontextmanager
async def small_house(
    settings: str = PATIENT, pool: str = FULL, replicas: tuple[EmulatorSettings, ...] = (STEADY,)
) -> AsyncIterator[House]:
    """Run a gateway that one stream fills, if its pool is not another."""
    quiet = "[server]\ndrain_delay_seconds = 0\n[upstream]\npool_idle_seconds = 0.05\nprobe_interval_seconds = 3600\n"
    async with house(settings + quiet, replicas=replicas, pool=f"release_grace_seconds = 0.05\n{pool}") as gate:
        yield gate


@asynccontextmanager
async def held(gate: House, number: int = 1, model: str = "tgi") -> AsyncIterator[AsyncExitStack]:
    """Hold room by streams that have begun; they leave with the context, or when the stack is closed."""
    body = {"inputs": "Hello", "parameters": {"max_new_tokens": HELD_TOKENS}, "model": model}
    async with AsyncExitStack() as streams:
        for _ in range(number):
            stream = await streams.enter_async_context(gate.session.post(f"{gate.data}/generate_stream", json=body))
            assert stream.status == 200
            await stream.content.readany()
        yield streams


@asynccontextmanager
async def stuck(gate: House, number: int, body: Mapping[str, object] = SMALL) -> AsyncIterator[None]:
    """Stop the first replica's engine with so many short requests inside, which then take longer than is foreseen."""
    engine = gate.replicas[0].replica.engine
    engine.stall(float("inf"))
    tasks = [asyncio.ensure_future(gate.post("/generate_stream", body)) for _ in range(number)]
    await until(lambda: len(gate.replicas[0].replica.live) == number)
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await until(lambda: gate.active_tokens() == 0)
    engine.stall(0)


def waiting(gate: House) -> int:
    """Return how many requests wait, as the gauge tells it."""
    pools = gate.daemon.gateway.driver.state().pools
    return sum(queue.requests for pool in pools for queue in pool.queues)


async def until_waiting(gate: House, number: int) -> None:
    await until(lambda: waiting(gate) == number)


def error_of(got: Got) -> dict[str, object]:
    """Return what an answer tells of its error, in whichever dialect."""
    body: dict[str, object] = got.json()
    inner = body["error"]
    return inner if isinstance(inner, dict) else body
