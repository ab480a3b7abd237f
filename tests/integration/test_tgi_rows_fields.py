"""The native fields that matter for tokens: what samples, copies, details, grammars; and OpenAI's form of the last.

Each row's id is a sentence of the router's source; TGI 3.3.5 unless it says otherwise.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from fakes.simulated import Answer, Site, simulated

HI = [{"role": "user", "content": "Hello"}]
SCHEMA = {"type": "object", "properties": {"animal": {"type": "string"}}}
VALIDATION = "Input validation error: "
SHAPE = "Failed to deserialize the JSON body into the target type: "
PLAIN = "text/plain; charset=utf-8"


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with simulated({"max_input_tokens": 8000, "max_total_tokens": 8001}) as running:
        yield running


async def generate(site: Site, **parameters: Any) -> Answer:
    return await site.post("/generate", {"inputs": "Hello", "parameters": {"max_new_tokens": 4, **parameters}})


async def chat(site: Site, **fields: Any) -> Answer:
    return await site.post("/v1/chat/completions", {"messages": HI, "max_tokens": 4, **fields})


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
