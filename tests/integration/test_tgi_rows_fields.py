"""The fields of a request that matter for tokens: their defaults, limits, aliases, and what has no effect.

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


async def generate(site: Site, **parameters: Any) -> Answer:
    return await site.post("/generate", {"inputs": "Hello", "parameters": {"max_new_tokens": 4, **parameters}})


async def chat(site: Site, **fields: Any) -> Answer:
    return await site.post("/v1/chat/completions", {"messages": HI, "max_tokens": 4, **fields})


async def complete(site: Site, **fields: Any) -> Answer:
    return await site.post("/v1/completions", {"prompt": "Hello", "max_tokens": 4, **fields})


# --- what samples: only then is there a seed, and only then may there be copies


SAMPLING: dict[str, tuple[dict[str, Any], bool]] = {
    "parameters without do_sample do not sample": ({}, False),
    "do_sample": ({"do_sample": True}, True),
    "temperature": ({"temperature": 0.7}, True),
    "top_k": ({"top_k": 3}, True),
    "top_p": ({"top_p": 0.5}, True),
    "typical_p": ({"typical_p": 0.5}, True),
    "a seed alone does not sample": ({"seed": 3}, False),
    "a repetition penalty alone does not sample": ({"repetition_penalty": 1.2}, False),
}


@pytest.mark.parametrize(("parameters", "samples"), SAMPLING.values(), ids=SAMPLING)
async def test_a_seed_is_told_where_one_was_used(site: Site, parameters: dict[str, Any], *, samples: bool) -> None:
    details = (await generate(site, details=True, **parameters)).json["details"]
    assert (details["seed"] is not None) == samples
    given = await generate(site, details=True, **{**parameters, "seed": 11})
    assert given.json["details"]["seed"] == (11 if samples else None)


# --- best_of


BEST_OF = {
    "two copies": ({"best_of": 2, "do_sample": True}, 200, None),
    "one copy is no best_of": ({"best_of": 1}, 200, None),
    "at most two": ({"best_of": 3, "do_sample": True}, 422, "`best_of` must be > 0 and <= 2. Given: 3"),
    "it needs sampling": ({"best_of": 2}, 422, "you must use sampling when `best_of` is > 1"),
    "it takes no seed": (
        {"best_of": 2, "do_sample": True, "seed": 1},
        422,
        "`seed` must not be set when `best_of` > 1",
    ),
}


@pytest.mark.parametrize(("parameters", "status", "text"), BEST_OF.values(), ids=BEST_OF)
async def test_best_of_has_its_rules(site: Site, parameters: dict[str, Any], status: int, text: str | None) -> None:
    answer = await generate(site, **parameters)
    assert answer.status == status
    if text is not None:
        assert answer.json == {"error": VALIDATION + text, "error_type": "validation"}


async def test_each_copy_takes_a_permit_and_one_that_finds_none_fails_all() -> None:
    async with simulated({"max_concurrent_requests": 1}) as site:
        answer = await generate(site, best_of=2, do_sample=True)
        assert (answer.status, answer.json["error_type"]) == (429, "overloaded")
        assert (await site.state())["permits_in_use"] == 0
        assert (await generate(site)).status == 200


async def test_best_of_answers_with_the_copy_of_the_best_mean_log_probability(site: Site) -> None:
    details = (await generate(site, best_of=2, do_sample=True, details=True)).json["details"]
    (other,) = details["best_of_sequences"]
    means = [sum(token["logprob"] for token in one["tokens"]) / len(one["tokens"]) for one in (details, other)]
    assert means[0] >= means[1]
    assert list(other) == ["generated_text", "finish_reason", "generated_tokens", "seed", "prefill", "tokens"]


# --- native details


NATIVE_DETAILS = {
    "details are told when asked": ("3.3.5", {"details": True}, 0),
    "decoder_input_details tell details too": ("3.3.5", {"decoder_input_details": True}, 0),
    "the prompt's tokens were told before 3.0": ("2.4.0", {"decoder_input_details": True}, 3),
    "of a prompt that is cut its last tokens": ("2.4.0", {"decoder_input_details": True, "truncate": 2}, 2),
    "without decoder_input_details they were not": ("2.4.0", {"details": True}, 0),
}


@pytest.mark.parametrize(("version", "parameters", "prefill"), NATIVE_DETAILS.values(), ids=NATIVE_DETAILS)
async def test_details_are_told_as_asked(version: str, parameters: dict[str, Any], prefill: int) -> None:
    async with simulated({"version": version, "max_batch_prefill_tokens": 8192}) as site:
        tokens = (await site.post("/tokenize", {"inputs": "a b c"})).json
        body = {"inputs": "a b c", "parameters": {"max_new_tokens": 2, **parameters}}
        details = (await site.post("/generate", body)).json["details"]
    assert len(tokens) == 3
    assert list(details) == ["finish_reason", "generated_tokens", "seed", "prefill", "tokens"]
    assert [token["id"] for token in details["prefill"]] == [token["id"] for token in tokens[3 - prefill :]][:prefill]
    assert [list(token) for token in details["prefill"]] == [["id", "text", "logprob"]] * prefill
    assert [token["logprob"] is None for token in details["prefill"]] == [True, *[False] * (prefill - 1)][:prefill]


async def test_truncate_keeps_so_many_of_the_last_tokens_and_the_answer_repeats_the_whole_text(site: Site) -> None:
    answer = await site.post("/", {"inputs": "a b c d", "parameters": {"max_new_tokens": 1, "truncate": 2}})
    assert answer.headers["x-prompt-tokens"] == "2"
    assert answer.json[0]["generated_text"].startswith("a b c d")


# --- grammars


GRAMMARS: dict[str, tuple[Any, int, str | None]] = {
    "json": ({"type": "json", "value": SCHEMA}, 200, '{"animal": "text"}'),
    "json_object is another name": ({"type": "json_object", "value": SCHEMA}, 200, '{"animal": "text"}'),
    "a schema may be text": ({"type": "json", "value": '{"properties": {}}'}, 200, "{}"),
    "json_schema has its schema inside": ({"type": "json_schema", "value": {"schema": SCHEMA}}, 200, None),
    "regex": ({"type": "regex", "value": "[a-z]+"}, 200, None),
    "a schema needs properties": (
        {"type": "json", "value": {"type": "object"}},
        422,
        "grammar is not valid: Grammar must have a 'properties' field",
    ),
    "neither object nor text": ({"type": "json", "value": 3}, 422, "grammar is not supported"),
}


@pytest.mark.parametrize(("grammar", "status", "text"), GRAMMARS.values(), ids=GRAMMARS)
async def test_a_grammar_is_checked_and_followed(site: Site, grammar: Any, status: int, text: str | None) -> None:
    native = await generate(site, grammar=grammar, max_new_tokens=50)
    openai = await chat(site, response_format=grammar, max_tokens=50)
    assert native.status == openai.status == status
    if status == 422:
        assert native.json == openai.json == {"error": f"{VALIDATION}{text}", "error_type": "validation"}
    elif text is not None:
        assert native.json["generated_text"] == openai.json["choices"][0]["message"]["content"] == text


@pytest.mark.parametrize(
    "grammar",
    [{"type": "json_schema", "json_schema": {"schema": SCHEMA}}, {"type": "text"}, {"type": "json_object"}, "json"],
    ids=["OpenAI's key is not known", "OpenAI's text is not known", "a value is needed", "an object is needed"],
)
async def test_openai_s_form_of_a_response_format_is_no_body(site: Site, grammar: Any) -> None:
    answer = await chat(site, response_format=grammar)
    assert (answer.status, answer.headers["content-type"]) == (422, PLAIN)
    assert answer.body.decode().startswith(SHAPE)


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


async def test_openai_s_newer_name_of_the_ceiling_is_an_alias_from_3_1_on() -> None:
    for version, tokens in (("3.3.5", 3), ("3.1.0", 3), ("3.0.1", 40), ("2.4.0", 40)):
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
        async with asyncio.timeout(10):
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
