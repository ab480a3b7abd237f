"""The fields of chats and completions: aliases, limits, what has no effect, tools, images.

Each row's id is a sentence of the router's source; TGI 3.3.5 unless it says otherwise.
"""

import asyncio
from collections.abc import AsyncIterator
from math import inf
from typing import Any

import pytest
import pytest_asyncio

from fakes.simulated import Answer, Site, simulated

HI = [{"role": "user", "content": "Hello"}]
SCHEMA = {"type": "object", "properties": {"animal": {"type": "string"}}}
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}
VALIDATION = "Input validation error: "
SHAPE = "Failed to deserialize the JSON body into the target type: "
UNARY = "application/json"
PLAIN = "text/plain; charset=utf-8"


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with simulated({"max_input_tokens": 8000, "max_total_tokens": 8001}) as running:
        yield running


async def chat(site: Site, **fields: Any) -> Answer:
    return await site.post("/v1/chat/completions", {"messages": HI, "max_tokens": 4, **fields})


async def complete(site: Site, **fields: Any) -> Answer:
    return await site.post("/v1/completions", {"prompt": "Hello", "max_tokens": 4, **fields})


# --- chat fields


TAKEN: dict[str, dict[str, Any]] = {
    "n has no effect": {"n": 3},
    "logit_bias has no effect": {"logit_bias": [0.5]},
    "any model is an adapter, and an unknown one the base model": {"model": "some/adapter"},
    "a temperature of 0 is greedy": {"temperature": 0},
    "a temperature of 0 is greedy, as a fraction": {"temperature": 0.0},
    "up to five top_logprobs": {"logprobs": True, "top_logprobs": 5},
    "a list of stop texts": {"stop": ["a b c d"]},
    "null stands for none": {"stop": None, "tools": None, "tool_choice": None, "max_tokens": 4, "seed": None},
    "a presence penalty above -2": {"presence_penalty": -1.5},
    "a name is taken and dropped": {"messages": [{"role": "user", "content": "Hello", "name": "Ada"}]},
    "tool_choice without tools": {"tool_choice": "auto"},
}


@pytest.mark.parametrize("fields", TAKEN.values(), ids=TAKEN)
async def test_a_chat_takes_and_answers_with_one_choice(site: Site, fields: dict[str, Any]) -> None:
    answer = await chat(site, **fields)
    assert answer.status == 200
    assert len(answer.json["choices"]) == 1
    assert answer.json["usage"]["completion_tokens"] == 4


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "both names of the ceiling": ({"max_completion_tokens": 3}, PLAIN, SHAPE + "duplicate field `max_tokens`"),
    "stop as a bare string": ({"stop": "x"}, PLAIN, SHAPE + "stop"),
    "logit_bias as OpenAI's map": ({"logit_bias": {"50256": -100}}, PLAIN, SHAPE + "logit_bias"),
    "no messages": ({"messages": None}, PLAIN, SHAPE + "messages"),
    "content null without tool calls": (
        {"messages": [{"role": "user", "content": None}]},
        PLAIN,
        SHAPE + "messages[0]",
    ),
    "a message without a role": ({"messages": [{"content": "x"}]}, PLAIN, SHAPE + "messages[0]"),
    "a negative ceiling": ({"max_tokens": -1}, PLAIN, SHAPE + "max_tokens"),
    "a fraction for a ceiling": ({"max_tokens": 1.5}, PLAIN, SHAPE + "max_tokens"),
    "a string for a ceiling": ({"max_tokens": "4"}, PLAIN, SHAPE + "max_tokens"),
    "stream as null": ({"stream": None}, PLAIN, SHAPE + "stream"),
    "stream_options as null": ({"stream_options": None}, PLAIN, SHAPE + "stream_options"),
    "a ceiling of 0": ({"max_tokens": 0}, UNARY, VALIDATION + "`max_new_tokens` must be strictly positive"),
    "six top_logprobs": (
        {"logprobs": True, "top_logprobs": 6},
        UNARY,
        VALIDATION + "`top_n_tokens` must be >= 0 and <= 5. Given: 6",
    ),
    "five stop texts": (
        {"stop": ["a", "b", "c", "d", "e"]},
        UNARY,
        VALIDATION + "`stop` supports up to 4 stop sequences. Given: 5",
    ),
    "a presence penalty of -2 is a repetition penalty of 0": (
        {"presence_penalty": -2},
        UNARY,
        VALIDATION + "`repetition_penalty` must be strictly positive",
    ),
    "a frequency penalty over 2": (
        {"frequency_penalty": 2.5},
        UNARY,
        VALIDATION + "`frequency_penalty` must be >= -2.0 and <= 2.0",
    ),
    "a grammar beside tools": (
        {"tools": [WEATHER], "response_format": {"type": "json", "value": SCHEMA}},
        UNARY,
        "Tool error: Grammar and tools are mutually exclusive",
    ),
    "a tool that is not offered": (
        {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "other"}}},
        UNARY,
        "Tool error: Tool with name other not found",
    ),
    "a word that is no choice is a name": (
        {"tools": [WEATHER], "tool_choice": "any"},
        UNARY,
        "Tool error: Tool with name any not found",
    ),
    "a choice of no known form": ({"tool_choice": {"function": {}}}, PLAIN, SHAPE + "tool_choice"),
}


@pytest.mark.parametrize(("fields", "kind", "text"), REFUSED.values(), ids=REFUSED)
async def test_a_chat_refuses(site: Site, fields: dict[str, Any], kind: str, text: str) -> None:
    answer = await chat(site, **fields)
    assert (answer.status, answer.headers["content-type"]) == (422, kind)
    told = answer.json["error"] if kind == UNARY else answer.body.decode()
    assert told == text if kind == UNARY else told.startswith(text)


async def test_openai_s_newer_name_of_the_ceiling_is_an_alias_from_3_0_2_on() -> None:
    for version, tokens in (("3.3.5", 3), ("3.0.2", 3), ("3.0.1", 40), ("2.4.0", 40)):
        changes = {"version": version, "max_input_tokens": 8000, "max_total_tokens": 8001}
        async with simulated({**changes, "max_batch_prefill_tokens": 8192}) as site:
            prompt = len((await site.post("/chat_tokenize", {"messages": HI})).json["tokenize_response"])
        # So long a total that a ceiling that is not understood gives 40 tokens.
        smaller = {"max_input_tokens": prompt, "max_total_tokens": prompt + 40}
        async with simulated({**changes, **smaller, "max_batch_prefill_tokens": 8192}) as site:
            answer = await site.post("/v1/chat/completions", {"messages": HI, "max_completion_tokens": 3})
        # 2.4 fills nothing: it takes 100 for a ceiling that is absent, which does not fit here.
        if version == "2.4.0":
            assert (answer.status, answer.json["error_type"]) == (422, "validation")
        else:
            assert answer.json["usage"]["completion_tokens"] == tokens


# --- completions


async def test_a_completion_knows_only_max_tokens() -> None:
    async with simulated({"max_input_tokens": 100, "max_total_tokens": 101}) as site:
        answer = await site.post("/v1/completions", {"prompt": "a b c", "max_completion_tokens": 3})
    assert answer.json["usage"] == {"prompt_tokens": 3, "completion_tokens": 98, "total_tokens": 101}


COMPLETIONS: dict[str, tuple[dict[str, Any], str, str]] = {
    "a suffix": (
        {"suffix": "x"},
        "suffix not supported",
        "Suffix is not supported and can be achieved by preprocessing the prompt.",
    ),
    "five prompts": (
        {"prompt": ["a"] * 5},
        "batch size exceeded",
        "Number of prompts exceeds the maximum allowed batch size of 4",
    ),
    "one prompt of several is empty": ({"prompt": ["a", ""]}, "validation", VALIDATION + "`inputs` cannot be empty"),
}


@pytest.mark.parametrize(("fields", "kind", "text"), COMPLETIONS.values(), ids=COMPLETIONS)
async def test_a_completion_refuses(site: Site, fields: dict[str, Any], kind: str, text: str) -> None:
    answer = await complete(site, **fields)
    assert (answer.status, answer.json) == (422, {"error": text, "error_type": kind})


@pytest.mark.parametrize("prompt", [[], None, 3, [3], [[1, 2]], {"a": 1}])
async def test_a_prompt_is_a_text_or_a_list_of_some(site: Site, prompt: Any) -> None:
    answer = await complete(site, prompt=prompt)
    assert (answer.status, answer.headers["content-type"]) == (422, PLAIN)


async def test_each_prompt_takes_a_permit() -> None:
    async with simulated({"max_concurrent_requests": 2}) as site:
        assert (await complete(site, prompt=["a", "b"])).status == 200
        answer = await complete(site, prompt=["a", "b", "c"])
        state = await site.state()
    assert (answer.status, answer.json["error_type"]) == (429, "overloaded")
    assert state["permits_in_use"] == 0


async def begun_together(site: Site, body: dict[str, Any]) -> Answer:
    """Hold the engine until all prompts wait, so that they begin with the same step."""
    engine = site.emulator.replica.engine
    engine.stall(inf)
    async with asyncio.TaskGroup() as group:
        posted = group.create_task(site.post("/v1/completions", body))
        async with asyncio.timeout(30):
            while engine.queue_size < len(body["prompt"]):  # noqa: ASYNC110 - the engine tells nobody of its queue
                await asyncio.sleep(0.001)
        engine.stall(0)
    return posted.result()


async def test_choices_come_in_the_order_in_which_they_end() -> None:
    async with simulated(output_mean_tokens=20.0) as site:
        body = {"prompt": ["a", "b", "c", "d"], "max_tokens": 1000}
        answer = (await begun_together(site, body)).json
        events = (await begun_together(site, {**body, "stream": True})).events[:-1]
    told = [event["choices"][0]["index"] for event in events]
    tokens = {index: told.count(index) for index in range(4)}
    assert len(set(tokens.values())) == 4
    assert [choice["index"] for choice in answer["choices"]] == sorted(tokens, key=lambda one: tokens[one])
    assert answer["usage"]["completion_tokens"] == sum(tokens.values())


# --- tools


async def until_no_tool(site: Site, **fields: Any) -> tuple[list[dict[str, str]], Answer, int]:
    """Ask until the model calls no tool; return the messages, the answer and how many calls came before."""
    for words in range(40):
        messages = [{"role": "user", "content": "Hello" + " there" * words}]
        answer = await chat(site, messages=messages, tools=[WEATHER], max_tokens=200, **fields)
        if "content" in answer.json["choices"][0]["message"]:
            return messages, answer, words
    raise AssertionError("every one of 40 chats called a tool")


def metric(text: bytes, name: str) -> float:
    (value,) = [line.split()[1] for line in text.decode().splitlines() if line.startswith(f"{name} ")]
    return float(value)


async def test_no_tool_generates_a_second_time_without_tools(site: Site) -> None:
    messages, answer, calls = await until_no_tool(site)
    prefills = metric((await site.get("/metrics")).body, "tgi_request_input_length_count")
    plain = await chat(site, messages=messages, max_tokens=200)
    assert answer.json["choices"] == plain.json["choices"]
    # The second generation alone is told of, though both were prefilled.
    assert answer.json["usage"] == plain.json["usage"]
    assert answer.headers["x-prompt-tokens"] == plain.headers["x-prompt-tokens"]
    assert prefills == calls + 2


async def test_the_second_generation_may_be_refused_after_the_first_was_done() -> None:
    async with simulated() as site:
        messages, _, _ = await until_no_tool(site)
    async with simulated({"max_concurrent_requests": 1}) as site:
        permits = iter([False, True])
        take = site.emulator.replica.engine.take_permit

        def taken_by_another() -> int:
            if next(permits):
                take()  # by one who came between the two
            return take()

        site.emulator.replica.engine.take_permit = taken_by_another  # type: ignore[method-assign] # between two runs
        answer = await chat(site, messages=messages, tools=[WEATHER], max_tokens=200)
        text = (await site.get("/metrics")).body
        site.emulator.replica.engine.take_permit = take  # type: ignore[method-assign] # as it was
    assert (answer.status, answer.json) == (429, {"error": "Model is overloaded", "error_type": "overloaded"})
    assert metric(text, "tgi_request_success") == 1
    assert metric(text, "tgi_request_count") == 3


@pytest.mark.parametrize("tokens", [1, 3, 6])
async def test_a_call_that_the_ceiling_cuts_is_a_tool_error(site: Site, tokens: int) -> None:
    answer = await chat(site, tools=[WEATHER], tool_choice="required", max_tokens=tokens)
    assert (answer.status, answer.json["error_type"]) == (422, "tool_error")
    assert answer.json["error"].startswith("Tool error: Failed to parse generated text: EOF while parsing ")
    assert '"{' in answer.json["error"]


# --- images, for a model that sees none


async def test_an_image_is_counted_as_the_text_of_its_address(site: Site) -> None:
    url = "data:image/png;base64," + "iVBORw0KGgo" * 40
    parts = [{"type": "text", "text": "Look: "}, {"type": "image_url", "image_url": {"url": url}}]
    pictured = (await site.post("/chat_tokenize", {"messages": [{"role": "user", "content": parts}]})).json
    spelled = (await site.post("/chat_tokenize", {"messages": [{"role": "user", "content": f"Look: ![]({url})"}]})).json
    answer = await chat(site, messages=[{"role": "user", "content": parts}])
    assert pictured == spelled
    assert f"![]({url})" in pictured["templated_text"]
    assert answer.json["usage"]["prompt_tokens"] == len(pictured["tokenize_response"]) > 100
