"""A schedule recorded in real time, gone through again in virtual time."""

import asyncio
import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from fakes.simulated import embedded_vocabulary
from llmshed.emulator import Emulator, EmulatorSettings
from llmshed.emulator.recorder import recorded_scheduler
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.replaying import Schedule, read_schedule, replay
from llmshed.simulation.results import ChunkQueued, Dropped, Ended, Failed, FirstToken, Result, StepKind, StepsEnded
from llmshed.simulation.schedule import Leave, Stall, Submit, TakePermit

PARAMETERS = ReplicaParameters(
    max_concurrent_requests=8,
    max_total_tokens=4096,
    max_input_tokens=4000,
    max_batch_prefill_tokens=300,
    kv_tokens=9_000,
    prefix_caching=True,
    step_times=StepTimes(0.0006, 2e-6, 1e-6, 0.0, 3e-9, 2e-8),
)
SUBJECTS = ("tariffs", "rivers", "the history of bridges", "gardens in winter")


def body(rng: random.Random, number: int) -> tuple[str, dict[str, Any]]:
    """Return a route and what is posted to it; prompts on one subject begin alike."""
    text = f"A report on {rng.choice(SUBJECTS)}. " * rng.randint(1, 40) + f"Question {number % 7}"
    tokens = rng.choice([8, 60, 300, 1200])
    match rng.randrange(4):
        case 0:
            return "/generate_stream", {"inputs": text, "parameters": {"max_new_tokens": tokens, "stop": [","]}}
        case 1:
            return "/v1/chat/completions", {
                "messages": [{"role": "user", "content": text}],
                "max_tokens": tokens,
                "stream": True,
            }
        case 2:
            return "/v1/completions", {"prompt": [text, text], "max_tokens": min(tokens, 300), "stream": True}
        case _:
            return "/v1/completions", {"prompt": text, "max_tokens": min(tokens, 300)}


def patience(rng: random.Random) -> int | None:
    return rng.choice([None, None, rng.randint(1, 4000)])


LONG = ("/generate_stream", {"inputs": "At length", "parameters": {"max_new_tokens": 1200}})
WHOLE = ("/v1/completions", {"prompt": "At once", "max_tokens": 8})


async def ask(
    session: aiohttp.ClientSession, url: str, sent: tuple[str, dict[str, Any]], delay: float, most_bytes: int | None
) -> None:
    """Post one request after a while, and give it up after `most_bytes` of its answer."""
    route, posted = sent
    await asyncio.sleep(delay)
    async with session.post(url + route, json=posted) as response:
        received = 0
        async for data in response.content.iter_any():
            received += len(data)
            if most_bytes is not None and received >= most_bytes:
                response.close()
                return


async def order(session: aiohttp.ClientSession, url: str, fault: dict[str, Any]) -> None:
    async with session.post(url + "/_simulate/faults", json=fault) as response:
        assert response.status == 200


async def fail_in_second_chunk(session: aiohttp.ClientSession, url: str) -> None:
    """Stall the engine under a stream of two chunks, and let its batch fail once it is in the second."""
    route, posted = LONG
    events = 0
    orders: dict[int, dict[str, Any]] = {100: {"stall_seconds": 0.2}, 1100: {"fail_batch": True}}
    async with session.post(url + route, json=posted) as response:
        async for line in response.content:
            events += line.startswith(b"data:")
            if line.startswith(b"data:") and events in orders:
                await order(session, url, orders[events])
    assert events > 1100


async def record(path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a load that can be had again, no secret
    settings = EmulatorSettings(parameters=PARAMETERS, output_mean_tokens=None, drain_seconds=5.0)
    with recorded_scheduler(path, PARAMETERS) as scheduler:
        emulator = Emulator(settings, vocabulary=embedded_vocabulary(), scheduler=scheduler)
        url = await emulator.start()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            load = [ask(session, url, body(rng, number), rng.uniform(0.1, 2.2), patience(rng)) for number in range(60)]
            # Whatever the machine's pace: one is given up, some find no permit, and one is lost with its batch.
            burst = [ask(session, url, LONG, 0.1, None) for _ in range(PARAMETERS.max_concurrent_requests)]
            await asyncio.gather(fail_in_second_chunk(session, url), ask(session, url, LONG, 0.05, 200), *load, *burst)
            # On a busy machine any of those may have found no permit: these find one.
            for number in range(4):
                await ask(session, url, WHOLE, 0.0, None)
                await ask(session, url, body(rng, number), 0.0, None)
        await emulator.stop()


def joined(results: Iterable[Result]) -> list[Result]:
    """Put neighbouring runs of decode steps together, which is all that looking more often may take apart."""
    put: list[Result] = []
    for result in results:
        last = put[-1] if put else None
        if is_plain(result) and is_plain(last):
            assert isinstance(last, StepsEnded)
            assert isinstance(result, StepsEnded)
            put[-1] = replace(last, count=last.count + result.count, seconds=last.seconds + result.seconds)
        else:
            put.append(result)
    return put


def is_plain(result: Result | None) -> bool:
    return isinstance(result, StepsEnded) and result.kind is StepKind.DECODE and not result.failed


def without_seconds(result: Result) -> Result:
    return replace(result, seconds=0.0) if isinstance(result, StepsEnded) else result


@pytest.fixture(scope="module")
def schedule(tmp_path_factory: pytest.TempPathFactory) -> Schedule:
    path = tmp_path_factory.mktemp("recorded") / "schedule.jsonl"
    asyncio.run(record(path, seed=20_240_607))
    with path.open("rb") as lines:
        return read_schedule(lines)


@pytest.mark.slow
def test_the_recording_holds_what_was_done_to_the_replica(schedule: Schedule) -> None:
    calls = [called.call for called in schedule.calls]
    permits = [call.granted for call in calls if isinstance(call, TakePermit)]
    assert True in permits
    assert False in permits
    assert any(isinstance(call, Stall) and call.seconds == 0.2 for call in calls)
    assert any(isinstance(call, Leave) for call in calls)
    for kind in (FirstToken, ChunkQueued, Ended, Dropped, Failed, StepsEnded):
        assert any(isinstance(result, kind) for result in schedule.results), kind.__name__


@pytest.mark.slow
def test_whole_completions_pass_the_cache_by_and_all_others_ask_it(schedule: Schedule) -> None:
    asked = [call.call.sequence.blocks for call in schedule.calls if isinstance(call.call, Submit)]
    assert None in asked
    prompts = [blocks for blocks in asked if blocks is not None]
    assert all(blocks.unit_tokens == 1 for blocks in prompts)
    # Four subjects and the chat template: few first ids for many prompts.
    assert len({blocks.ids[:8] for blocks in prompts}) < len(prompts) / 2


@pytest.mark.slow
def test_a_replay_in_virtual_time_gives_the_same_order_steps_and_instants(schedule: Schedule) -> None:
    recorded, replayed = joined(schedule.results), joined(replay(schedule))
    # Order, kinds and numbers of steps, and every instant to the last bit.
    assert list(map(without_seconds, replayed)) == list(map(without_seconds, recorded))
    # A run that was looked at step by step has its duration as a sum of many differences.
    for ours, theirs in zip(replayed, recorded, strict=True):
        if isinstance(ours, StepsEnded) and isinstance(theirs, StepsEnded):
            assert ours.seconds == pytest.approx(theirs.seconds, abs=1e-9)


@pytest.mark.slow
def test_the_cache_is_part_of_what_is_replayed(schedule: Schedule) -> None:
    """Without it the same calls take longer, so that its hits were in the recording."""
    with_cache = sum(result.seconds for result in replay(schedule) if isinstance(result, StepsEnded))
    roomy = replace(schedule.parameters, prefix_caching=False, max_concurrent_requests=10_000)
    granted = tuple(
        called for called in schedule.calls if not isinstance(called.call, TakePermit) or called.call.granted
    )
    without = replay(replace(schedule, parameters=roomy, calls=granted))
    assert sum(result.seconds for result in without if isinstance(result, StepsEnded)) > with_cache


def test_no_text_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "schedule.jsonl"
    asyncio.run(record_one(path, "a very secret question"))
    data = path.read_bytes()
    assert b"secret" not in data
    ids = embedded_vocabulary().ids("a very secret question", add_special_tokens=True)
    (submitted,) = [line for line in map(orjson.loads, data.splitlines()) if line.get("call") == "submit"]
    recorded = submitted["sequence"]["blocks"]["ids"]
    assert len(recorded) == len(ids) == submitted["sequence"]["input_tokens"]
    assert not set(recorded) & set(ids)


async def record_one(path: Path, text: str) -> None:
    with recorded_scheduler(path, PARAMETERS) as scheduler:
        settings = EmulatorSettings(parameters=PARAMETERS)
        emulator = Emulator(settings, vocabulary=embedded_vocabulary(), scheduler=scheduler)
        url = await emulator.start()
        async with aiohttp.ClientSession() as session:
            posted = {"inputs": text, "parameters": {"max_new_tokens": 4}}
            async with session.post(url + "/generate", json=posted) as response:
                assert response.status == 200
        await emulator.stop()
