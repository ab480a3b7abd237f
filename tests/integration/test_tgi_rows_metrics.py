"""TGI's metrics and headers: when each appears, what it counts, and by which labels and buckets.

Names, types, labels and buckets come from the table that was read from TGI's source; each row's id is the metric and
what its source says of it.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from fakes.simulated import Answer, Site, simulated
from llmshed.simulation.cost import StepTimes

HI = [{"role": "user", "content": "Hello"}]
NEVER_SHOWN = {"tgi_batch_max_total_tokens", "tgi_batch_total_tokens"}
LABELS = {
    "tgi_request_failure": "err",
    "tgi_batch_concat": "reason",
    "tgi_batch_concat_duration": "method",
    "tgi_batch_inference_count": "method",
    "tgi_batch_inference_success": "method",
    "tgi_batch_inference_failure": "method",
    "tgi_batch_inference_duration": "method",
    "tgi_batch_forward_duration": "method",
    "tgi_batch_decode_duration": "method",
    "tgi_batch_filter_duration": "method",
}


@pytest.fixture
def spec(data_dir: Path) -> Any:
    return json.loads((data_dir / "metrics" / "tgi_metric_spec.json").read_text("utf-8"))


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with simulated() as running:
        yield running


async def native(site: Site, inputs: str = "Hello", **parameters: Any) -> Answer:
    return await site.post("/generate", {"inputs": inputs, "parameters": {"max_new_tokens": 4, **parameters}})


async def stream(site: Site, **parameters: Any) -> Answer:
    return await site.post("/generate_stream", {"inputs": "Hello", "parameters": {"max_new_tokens": 4, **parameters}})


async def chat(site: Site, **fields: Any) -> Answer:
    return await site.post("/v1/chat/completions", {"messages": HI, "max_tokens": 4, **fields})


async def complete(site: Site, **fields: Any) -> Answer:
    return await site.post("/v1/completions", {"prompt": "Hello", "max_tokens": 4, **fields})


async def vertex(site: Site) -> Answer:
    instance = {"inputs": "Hello", "parameters": {"max_new_tokens": 4}}
    return await site.post("/vertex", {"instances": [instance, instance]})


async def samples(site: Site) -> dict[str, float]:
    """Return every sample of the replica's metrics, by the text before its value."""
    lines = (await site.get("/metrics")).body.decode().splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if line and not line.startswith("#")]
    return {name: float(value) for name, value in pairs}


async def moved(site: Site, what: Callable[[], Awaitable[Any]]) -> dict[str, float]:
    """Return by how much each sample moved while something was done; those that did not are left out."""
    before = await samples(site)
    await what()
    after = await samples(site)
    changes = {name: value - before.get(name, 0.0) for name, value in after.items()}
    return {name: change for name, change in changes.items() if change}


# --- when they appear


async def test_nothing_is_shown_before_its_first_use(site: Site) -> None:
    for path in ("/health", "/info", "/v1/models", "/metrics", "/nope"):
        await site.get(path)
    await site.post("/tokenize", {"inputs": "x"})
    await site.post("/generate", b"{")
    answer = await site.get("/metrics")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


async def test_everything_that_the_source_records_is_shown_after_use(site: Site, spec: Any) -> None:
    """One of each kind: a success, a join, a failed step, a refusal."""
    async with running(site):
        await native(site)
    await site.post("/_simulate/faults", {"fail_after_events": 1, "times": 1})
    await native(site, max_new_tokens=6000)
    text = (await site.get("/metrics")).body.decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    expected = {name: kind for name, (kind, _, _) in spec["metrics"].items() if name not in NEVER_SHOWN}
    assert {name: family.type for name, family in families.items()} == expected
    assert not any(name in text for name in NEVER_SHOWN)
    for name, (_, _, description) in spec["metrics"].items():
        if name not in NEVER_SHOWN:
            assert (f"# HELP {name} {description}\n" in text) == (description is not None)
            assert f"# TYPE {name} {expected[name]}\n" in text


async def test_each_series_has_the_label_of_the_source_and_no_other(site: Site, spec: Any) -> None:
    async with running(site):
        await native(site)
    await native(site, "")
    await site.post("/_simulate/faults", {"fail_after_events": 1, "times": 1})
    await native(site, max_new_tokens=6000)
    text = (await site.get("/metrics")).body.decode()
    allowed = {name: dict(_label(text) for text in labels) for name, (_, labels, _) in spec["metrics"].items()}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name not in {"le", "quantile"}}
            assert set(labels) == set(allowed[family.name]) == ({LABELS[family.name]} if labels else set())
            for name, value in labels.items():
                assert value in (allowed[family.name][name] or {"prefill", "decode"})


def _label(text: str) -> tuple[str, set[str]]:
    name, _, values = text.partition(": ")
    return name, set(values.split("|")) if values else set()


@pytest.mark.parametrize("limits", [(4000, 8192), (1023, 1024)])
async def test_buckets_are_those_of_the_source_and_depend_on_the_limits(spec: Any, limits: tuple[int, int]) -> None:
    max_input_tokens, max_total_tokens = limits
    async with simulated({"max_input_tokens": max_input_tokens, "max_total_tokens": max_total_tokens}) as site:
        await native(site)
        text = (await site.get("/metrics")).body.decode()
    durations = spec["bucket_rules"]["names ending in duration"]
    linear: dict[str, Sequence[float]] = {
        "tgi_request_input_length": [max_input_tokens / 100 * step for step in range(1, 101)],
        "tgi_request_generated_tokens": [max_total_tokens / 100 * step for step in range(1, 101)],
        "tgi_request_max_new_tokens": [max_total_tokens / 100 * step for step in range(1, 101)],
        "tgi_batch_next_size": list(range(1, 1025)),
    }
    checked = 0
    for family in text_string_to_metric_families(text):
        if family.type == "histogram":
            edges = [sample.labels["le"] for sample in family.samples if sample.name.endswith("_bucket")]
            series = len({sample.labels.get("method") for sample in family.samples})
            expected = linear.get(family.name, durations)
            assert edges[-1] == "+Inf"
            assert [float(edge) for edge in edges] == ([*expected, inf]) * series
            checked += 1
    assert checked == 13


async def test_speculated_tokens_are_a_summary_with_the_exporter_s_quantiles(site: Site) -> None:
    await native(site)
    lines = (await site.get("/metrics")).body.decode().splitlines()
    told = [line for line in lines if line.startswith("tgi_request_skipped_tokens")]
    assert told == [
        *(f'tgi_request_skipped_tokens{{quantile="{q}"}} 0' for q in ("0", "0.5", "0.9", "0.95", "0.99", "0.999", "1")),
        "tgi_request_skipped_tokens_sum 0",
        "tgi_request_skipped_tokens_count 4",
    ]


async def test_tokens_that_were_guessed_right_are_observed_once_a_step() -> None:
    async with simulated({"speculate": 2, "accepted_tokens": 2, "max_batch_prefill_tokens": 8192}) as site:
        await native(site, max_new_tokens=31)
        told = await samples(site)
    # The prefill gives one token, and each of ten decodes three.
    assert told["tgi_request_skipped_tokens_count"] == 11
    assert told["tgi_request_skipped_tokens_sum"] == 20


# --- what they count


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
    async with asyncio.timeout(10):
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


@asynccontextmanager
async def running(site: Site) -> AsyncIterator[None]:
    """Keep a long stream running meanwhile."""
    body = {"inputs": "Hello", "parameters": {"max_new_tokens": 8000}}
    async with site.session.post(f"{site.url}/generate_stream", json=body) as response:
        await response.content.readline()
        yield
        response.close()


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


async def test_gauges_tell_what_is_held_and_are_0_when_idle(site: Site) -> None:
    async with running(site):
        busy = await samples(site)
        state = await site.state()
    assert busy["tgi_batch_current_size"] == 1
    assert busy["tgi_batch_current_max_tokens"] == state["kv_tokens_held"] == 1 + 1024 - 1
    assert busy["tgi_queue_size"] == 0
    async with asyncio.timeout(10):
        while (await site.state())["kv_tokens_held"]:  # noqa: ASYNC110 - the state is on the other side of a socket
            await asyncio.sleep(0.001)
    idle = await samples(site)
    assert [idle[name] for name in ("tgi_queue_size", "tgi_batch_current_size", "tgi_batch_current_max_tokens")] == [
        0
    ] * 3


# --- headers


WORK = (
    "x-compute-type",
    "x-compute-time",
    "x-compute-characters",
    "x-total-time",
    "x-validation-time",
    "x-queue-time",
    "x-inference-time",
    "x-time-per-token",
    "x-prompt-tokens",
    "x-generated-tokens",
)
STREAMED = ("x-compute-type", "x-compute-characters", "x-accel-buffering")
SUMMED = tuple(name for name in WORK if name != "x-compute-time")
HEADERS: dict[str, tuple[Callable[[Site], Awaitable[Answer]], tuple[str, ...]]] = {
    "/generate": (native, WORK),
    "/": (lambda site: site.post("/", {"inputs": "x", "parameters": {"max_new_tokens": 1}}), WORK),
    "/v1/chat/completions": (chat, WORK),
    "/v1/completions sums, without x-compute-time": (complete, SUMMED),
    "/generate_stream": (stream, STREAMED),
    "/v1/chat/completions streams": (lambda site: chat(site, stream=True), STREAMED),
    "/v1/completions streams": (lambda site: complete(site, stream=True), STREAMED),
    "/vertex tells none": (vertex, ()),
    "/tokenize tells none": (lambda site: site.post("/tokenize", {"inputs": "x"}), ()),
    "/chat_tokenize tells none": (lambda site: site.post("/chat_tokenize", {"messages": HI}), ()),
    "an error tells none": (lambda site: native(site, ""), ()),
}


@pytest.mark.parametrize(("what", "names"), HEADERS.values(), ids=HEADERS)
async def test_an_answer_has_these_headers_of_its_work(
    site: Site, what: Callable[[Site], Awaitable[Answer]], names: tuple[str, ...]
) -> None:
    answer = await what(site)
    told = {name.lower(): value for name, value in answer.headers.items() if name.lower().startswith("x-")}
    assert sorted(told) == sorted(names)
    for name, value in told.items():
        match name:
            case "x-compute-type":
                assert value == "gpu+optimized"
            case "x-accel-buffering":
                assert value == "no"
            case "x-compute-time":
                assert re.fullmatch(r"0\.\d+|\d+(\.\d+)?", value)
            case _:
                assert re.fullmatch(r"\d+", value)


async def test_prompts_are_summed_in_the_headers(site: Site) -> None:
    answer = await complete(site, prompt=["Hello", "grün", "a b c"], max_tokens=5)
    assert answer.headers["x-compute-characters"] == str(5 + 4 + 5)
    assert answer.headers["x-generated-tokens"] == "15"
    assert answer.headers["x-prompt-tokens"] == str(answer.json["usage"]["prompt_tokens"])
    streamed = await complete(site, prompt=["Hello", "grün", "a b c"], max_tokens=5, stream=True)
    assert streamed.headers["x-compute-characters"] == str(5 + 4 + 5)


async def test_a_chat_s_characters_are_those_of_its_rendered_text(site: Site) -> None:
    text = (await site.post("/chat_tokenize", {"messages": HI})).json["templated_text"]
    for streamed in (False, True):
        answer = await chat(site, stream=streamed)
        assert answer.headers["x-compute-characters"] == str(len(text))
