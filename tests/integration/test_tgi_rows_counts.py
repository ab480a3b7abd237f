"""What TGI's metrics count, quirks included: each row's id is the metric and what its source says of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from math import inf
from typing import Any

import pytest
import pytest_asyncio

from fakes.simulated import Site, simulated
from fakes.tgi_calls import HI, chat, complete, moved, native, running, samples, stream, vertex
from llmshed.simulation.cost import StepTimes


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with simulated() as running:
        yield running


# --- requests


ROW = tuple[Callable[[Site], Awaitable[Any]], dict[str, float]]
COUNTED: dict[str, ROW] = {
    "tgi_request_count: native 1": (native, {"tgi_request_count": 1, "tgi_request_success": 1}),
    "tgi_request_count: native streams 1": (stream, {"tgi_request_count": 1, "tgi_request_success": 1}),
    "tgi_request_count: chat 2": (chat, {"tgi_request_count": 2, "tgi_request_success": 1}),
    "tgi_request_count: chat streams 2": (
        lambda site: chat(site, stream=True),
        {"tgi_request_count": 2, "tgi_request_success": 1},
    ),
    "tgi_request_count: completions 1 and one a prompt": (
        lambda site: complete(site, prompt=["a", "b", "c"]),
        {"tgi_request_count": 4, "tgi_request_success": 3},
    ),
    "tgi_request_count: completions' streams 1 and one a prompt": (
        lambda site: complete(site, prompt=["a", "b"], stream=True),
        {"tgi_request_count": 3, "tgi_request_success": 2},
    ),
    "tgi_request_count: /vertex 1 and one an instance": (vertex, {"tgi_request_count": 3, "tgi_request_success": 2}),
    "tgi_request_count: /invocations as what it is": (
        lambda site: site.post("/invocations", {"messages": HI, "max_tokens": 2}),
        {"tgi_request_count": 2, "tgi_request_success": 1},
    ),
    "tgi_request_count: /chat_tokenize 1": (
        lambda site: site.post("/chat_tokenize", {"messages": HI}),
        {"tgi_request_count": 1},
    ),
    "tgi_request_count: /tokenize 0": (lambda site: site.post("/tokenize", {"inputs": "x"}), {}),
    "tgi_request_success: best_of counts once": (
        lambda site: native(site, best_of=2, do_sample=True),
        {
            "tgi_request_count": 1,
            "tgi_request_success": 1,
            "tgi_request_generated_tokens_count": 1,
            "tgi_request_input_length_count": 2,
        },
    ),
    "tgi_request_failure: validation": (
        lambda site: native(site, ""),
        {"tgi_request_count": 1, 'tgi_request_failure{err="validation"}': 1},
    ),
    "tgi_request_failure: validation of completions counts before the stream": (
        lambda site: complete(site, suffix="x"),
        {"tgi_request_count": 1, 'tgi_request_failure{err="validation"}': 1},
    ),
    "tgi_request_failure: too many copies are not counted": (
        lambda site: native(site, best_of=3, do_sample=True),
        {"tgi_request_count": 1},
    ),
    "tgi_request_failure: tools are not counted": (
        lambda site: chat(site, tools=[], response_format={"type": "regex", "value": "a"}),
        {"tgi_request_count": 1},
    ),
    "tgi_request_failure: what axum refuses is not even a request": (
        lambda site: site.post("/v1/chat/completions", {"messages": 3}),
        {},
    ),
}


@pytest.mark.parametrize(("what", "expected"), COUNTED.values(), ids=COUNTED)
async def test_requests_are_counted_as_the_router_counts_them(
    site: Site, what: Callable[[Site], Awaitable[Any]], expected: dict[str, float]
) -> None:
    changes = await moved(site, lambda: what(site))
    counted = (
        {"tgi_request_count", "tgi_request_success"} | {name for name in changes if "failure" in name} | set(expected)
    )
    assert {name: changes[name] for name in counted if name in changes} == expected


async def test_no_tool_makes_three_of_a_chat(site: Site) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    told = set()
    for words in range(6):
        messages = [{"role": "user", "content": "Hello" + " there" * words}]
        for streamed in (False, True):

            async def ask(messages: Any = messages, streamed: Any = streamed) -> None:
                answer = await chat(site, messages=messages, tools=[tool], max_tokens=100, stream=streamed)
                assert answer.status == 200

            changes = await moved(site, ask)
            told.add((streamed, changes["tgi_request_count"], changes["tgi_request_success"]))
    # A whole answer runs to its end before it is done again; a stream is let go as soon as the name is known.
    assert told == {(False, 2, 1), (False, 3, 2), (True, 2, 1), (True, 3, 1)}


async def test_an_overload_is_counted_on_every_route(site: Site) -> None:
    await site.post("/_simulate/faults", {"overloaded": True})

    async def all_of_them() -> None:
        for build in (native, stream, chat, complete):
            await build(site)

    changes = await moved(site, all_of_them)
    assert changes == {'tgi_request_failure{err="overloaded"}': 4, "tgi_request_count": 6}


async def test_each_prompt_is_counted_until_one_finds_no_permit() -> None:
    async with simulated({"max_concurrent_requests": 1}) as site:
        changes = await moved(site, lambda: complete(site, prompt=["a", "b", "c", "d"]))
    assert changes["tgi_request_count"] == 3
    assert changes['tgi_request_failure{err="overloaded"}'] == 1


async def test_all_prompts_are_counted_when_one_is_too_long() -> None:
    async with simulated({"max_input_tokens": 10, "max_total_tokens": 20}) as site:
        changes = await moved(site, lambda: complete(site, prompt=["word " * 15, "a", "b"], max_tokens=1))
    assert changes["tgi_request_count"] == 4
    assert changes['tgi_request_failure{err="validation"}'] == 1


async def test_lengths_are_observed_for_each_chunk_and_the_ceiling_is_the_chunk(site: Site) -> None:
    changes = await moved(site, lambda: native(site, "a b", max_new_tokens=1500))
    assert changes["tgi_request_input_length_count"] == 2
    # The second time with the first chunk's output as part of the input.
    assert changes["tgi_request_input_length_sum"] == 2 + 2 + 1024
    assert (changes["tgi_request_max_new_tokens_count"], changes["tgi_request_max_new_tokens_sum"]) == (2, 2048)
    # Once, and all of it.
    assert (changes["tgi_request_generated_tokens_count"], changes["tgi_request_generated_tokens_sum"]) == (1, 2048)
    assert changes["tgi_request_success"] == changes["tgi_request_queue_duration_count"] == 1


async def test_older_versions_run_a_ceiling_in_one_go() -> None:
    async with simulated({"version": "2.4.0", "max_batch_prefill_tokens": 8192}) as site:
        changes = await moved(site, lambda: native(site, "a b", max_new_tokens=1500))
    assert (changes["tgi_request_max_new_tokens_count"], changes["tgi_request_max_new_tokens_sum"]) == (1, 1500)
    assert changes["tgi_request_generated_tokens_sum"] == 1500


async def test_what_is_refused_leaves_no_length_and_no_duration(site: Site) -> None:
    changes = await moved(site, lambda: native(site, "word " * 9000))
    assert changes == {"tgi_request_count": 1, 'tgi_request_failure{err="validation"}': 1}


async def test_durations_are_recorded_at_the_end_and_only_of_successes(site: Site) -> None:
    names = ("", "validation_", "queue_", "inference_", "mean_time_per_token_")
    await site.post("/_simulate/faults", {"fail_after_events": 2, "times": 1})
    failed = await moved(site, lambda: native(site, max_new_tokens=6000))
    succeeded = await moved(site, lambda: native(site, max_new_tokens=50))
    for name in names:
        assert f"tgi_request_{name}duration_count" not in failed
        assert succeeded[f"tgi_request_{name}duration_count"] == 1
    told = {name: succeeded.get(f"tgi_request_{name}duration_sum", 0.0) for name in names}
    assert told[""] == pytest.approx(told["validation_"] + told["queue_"] + told["inference_"])
    # The mean is of all the time that its batches took, prefill included.
    assert told["mean_time_per_token_"] == pytest.approx(told["inference_"] / 50)


async def waiting(site: Site, number: int) -> None:
    """Wait until so many sequences are in the queue."""
    async with asyncio.timeout(30):
        while site.emulator.replica.engine.queue_size < number:  # noqa: ASYNC110 - the engine tells nobody of its queue
            await asyncio.sleep(0.001)


async def test_the_wait_is_that_before_the_first_chunk_and_later_ones_are_inference() -> None:
    """Room for one chunk at a time, so that two long answers take turns at the tail of the queue."""
    fast = StepTimes(0.0001, 0, 0)
    small = {"kv_tokens": 3200, "max_input_tokens": 3071, "max_total_tokens": 3072, "step_times": fast}
    async with simulated(small) as site:

        async def both() -> None:
            site.emulator.replica.engine.stall(inf)
            async with asyncio.TaskGroup() as group:
                for _ in range(2):
                    group.create_task(native(site, "word " * 1000, max_new_tokens=1900))
                await waiting(site, 2)
                site.emulator.replica.engine.stall(0)

        changes = await moved(site, both)
    # The second waits for the first one's first chunk of 1,024 tokens, and each for the other's next ones.
    steps = 1024 * fast.step_seconds
    assert changes["tgi_request_queue_duration_count"] == 2
    assert changes["tgi_request_queue_duration_sum"] >= steps
    assert changes["tgi_request_inference_duration_sum"] >= 6 * steps


# --- the engine's own


async def test_calls_are_counted_by_method(site: Site) -> None:
    changes = await moved(site, lambda: native(site))
    for what in ("count", "success"):
        assert changes[f'tgi_batch_inference_{what}{{method="prefill"}}'] == 1
        assert changes[f'tgi_batch_inference_{what}{{method="decode"}}'] == 3
    for name in ("inference", "forward", "decode", "filter"):
        assert changes[f'tgi_batch_{name}_duration_count{{method="prefill"}}'] == 1
        assert changes[f'tgi_batch_{name}_duration_count{{method="decode"}}'] == 3
    assert changes["tgi_batch_next_size_count"] == changes["tgi_batch_next_size_sum"] == 1
    assert not [name for name in changes if "concat" in name or "failure" in name]


async def test_a_failed_call_is_counted_and_has_no_duration(site: Site) -> None:
    await site.post("/_simulate/faults", {"fail_batch": True})
    changes = await moved(site, lambda: native(site))
    assert changes['tgi_batch_inference_count{method="prefill"}'] == 1
    assert changes['tgi_batch_inference_failure{method="prefill"}'] == 1
    assert changes['tgi_request_failure{err="generation"}'] == 1
    assert not [name for name in changes if "batch" in name and "duration" in name]


JOINS = {
    "chunking": ({}, "chunking"),
    "no chunks of prefill, and as many waiting as asked for": (
        {"version": "2.4.0", "max_batch_prefill_tokens": 8192, "max_waiting_steps": 1000},
        "backpressure",
    ),
    "no chunks of prefill, and a long wait": (
        {"version": "2.4.0", "max_batch_prefill_tokens": 8192, "max_waiting_steps": 1},
        "wait_exceeded",
    ),
}


@pytest.mark.parametrize(("changes", "reason"), JOINS.values(), ids=JOINS)
async def test_a_join_is_counted_by_its_reason_and_its_time_as_of_a_decode(
    changes: dict[str, Any], reason: str
) -> None:
    async with simulated(changes) as site, running(site):
        told = await moved(site, lambda: native(site))
    assert {name: value for name, value in told.items() if name.startswith("tgi_batch_concat{")} == {
        f'tgi_batch_concat{{reason="{reason}"}}': 1
    }
    assert told['tgi_batch_concat_duration_count{method="decode"}'] == 1


async def test_gauges_tell_what_is_held_and_are_0_when_idle() -> None:
    """Steps so slow that the first chunk of 1,024 tokens is not over before both looks."""
    async with simulated({"step_times": StepTimes(0.02, 0, 0)}) as site:
        async with running(site):
            busy = await samples(site)
            state = await site.state()
        assert busy["tgi_batch_current_size"] == 1
        assert busy["tgi_batch_current_max_tokens"] == state["kv_tokens_held"] == 1 + 1024 - 1
        assert busy["tgi_queue_size"] == 0
        async with asyncio.timeout(30):
            while (await site.state())["kv_tokens_held"]:  # noqa: ASYNC110 - the state is on the other side of a socket
                await asyncio.sleep(0.001)
        idle = await samples(site)
    assert [idle[name] for name in ("tgi_queue_size", "tgi_batch_current_size", "tgi_batch_current_max_tokens")] == [
        0
    ] * 3
