"""The simulated replica's OpenAI routes: chunks, usage, end marks, tools and errors as TGI writes them."""

import re
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import pytest_asyncio

from fakes.simulated import Answer, Site, embedded_vocabulary, simulated

HI = [{"role": "user", "content": "Hello"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with simulated() as running:
        yield running


async def chat(site: Site, **fields: Any) -> Answer:
    return await site.post("/v1/chat/completions", {"messages": HI, "max_tokens": 4, **fields})


async def complete(site: Site, **fields: Any) -> Answer:
    return await site.post("/v1/completions", {"prompt": "Hello", "max_tokens": 4, **fields})


def counted(text: str, *, special: bool) -> int:
    return embedded_vocabulary().count(text, add_special_tokens=special)


async def test_a_chat_is_answered_with_one_choice_and_its_usage(site: Site) -> None:
    answer = (await chat(site)).json
    rendered = (await site.post("/chat_tokenize", {"messages": HI})).json
    prompt = len(rendered["tokenize_response"])
    assert list(answer) == ["object", "id", "created", "model", "system_fingerprint", "choices", "usage"]
    assert (answer["object"], answer["id"], answer["model"]) == ("chat.completion", "", "llmshed/simulated")
    assert answer["system_fingerprint"] == "3.3.5-native"
    (choice,) = answer["choices"]
    assert list(choice) == ["index", "message", "logprobs", "finish_reason"]
    assert choice["message"]["role"] == "assistant"
    assert choice["finish_reason"] == "length"
    assert answer["usage"] == {"prompt_tokens": prompt, "completion_tokens": 4, "total_tokens": prompt + 4}


async def test_chat_tokenize_tells_the_rendered_text_and_its_tokens(site: Site) -> None:
    rendered = (await site.post("/chat_tokenize", {"messages": HI})).json
    assert list(rendered) == ["tokenize_response", "templated_text"]
    assert "Hello" in rendered["templated_text"]
    # No special tokens are put around a chat: its template wrote its own.
    assert len(rendered["tokenize_response"]) == counted(rendered["templated_text"], special=False)


async def test_a_chat_stream_has_the_engine_s_chunks(site: Site) -> None:
    answer = await chat(site, stream=True)
    assert answer.headers["content-type"] == "text/event-stream"
    start = (
        rb'data: \{"object":"chat.completion.chunk","id":"","created":\d+,"model":"llmshed/simulated",'
        rb'"system_fingerprint":"3.3.5-native","choices":\[\{"index":0,"delta":\{"role":"assistant","content":"[^"]*"\},'
        rb'"logprobs":null,"finish_reason":'
    )
    chunk, last = start + rb'null\}\],"usage":null\}' + b"\n\n", start + rb'"length"\}\],"usage":null\}' + b"\n\n"
    assert re.fullmatch(chunk * 3 + last + b"data: \\[DONE\\]\n\n", answer.body)


async def test_a_chat_stream_tells_usage_in_a_chunk_of_its_own_when_asked(site: Site) -> None:
    events = (await chat(site, stream=True, stream_options={"include_usage": True})).events
    assert events[-1] == "[DONE]"
    assert events[-2]["choices"] == []
    assert events[-2]["usage"]["completion_tokens"] == 4
    assert all(event["usage"] is None for event in events[:-2])


@pytest.mark.parametrize(("version", "where"), [("2.4.0", -2), ("3.1.1", -2)])
async def test_older_versions_tell_usage_in_the_last_chunk(version: str, where: int) -> None:
    async with simulated({"version": version, "max_batch_prefill_tokens": 8192}) as site:
        events = (await chat(site, stream=True, stream_options={"include_usage": True})).events
    assert events[where]["usage"]["completion_tokens"] == 4
    assert events[where]["choices"][0]["finish_reason"] == "length"


async def test_the_oldest_version_ends_streams_without_a_mark_and_without_usage() -> None:
    async with simulated({"version": "1.4.5", "max_batch_prefill_tokens": 8192}) as site:
        events = (await chat(site, stream=True)).events
        completion = (await complete(site, stream=True)).events
    assert events[-1]["choices"][0]["finish_reason"] == "length"
    assert "usage" not in events[-1]
    assert completion[-1]["choices"][0]["finish_reason"] == ""


async def test_an_end_token_is_called_stop_has_no_content_and_counts() -> None:
    async with simulated(output_mean_tokens=3.0) as site:
        events = (await chat(site, max_tokens=500, stream=True, stream_options={"include_usage": True})).events
        whole = (await chat(site, max_tokens=500)).json
    last = events[-3]["choices"][0]
    assert (last["delta"]["content"], last["finish_reason"]) == ("", "stop")
    assert events[-2]["usage"]["completion_tokens"] == len(events) - 2
    assert whole["choices"][0]["finish_reason"] == "stop"


async def test_the_model_is_the_one_asked_for_unless_it_is_the_engine_s_own_name(site: Site) -> None:
    assert (await chat(site, model="other")).json["model"] == "other"
    assert (await chat(site, model="tgi")).json["model"] == "llmshed/simulated"


async def test_log_probabilities_are_told_when_asked(site: Site) -> None:
    answer = (await chat(site, logprobs=True, top_logprobs=2)).json
    content = answer["choices"][0]["logprobs"]["content"]
    assert len(content) == 4
    assert [len(place["top_logprobs"]) for place in content] == [2] * 4
    streamed = (await chat(site, logprobs=True, top_logprobs=2, stream=True)).events
    assert streamed[0]["choices"][0]["logprobs"]["content"] == content[:1]


async def test_a_chat_must_fit_and_have_a_form(site: Site) -> None:
    bare_stop = await chat(site, stop="x")
    null_content = await chat(site, messages=[{"role": "user", "content": None}])
    both = await chat(site, max_completion_tokens=3)
    newer = await site.post("/v1/chat/completions", {"messages": HI, "max_completion_tokens": 3})
    assert [bare_stop.status, null_content.status, both.status] == [422, 422, 422]
    assert bare_stop.headers["content-type"].startswith("text/plain")
    assert b"duplicate field `max_tokens`" in both.body
    assert newer.json["usage"]["completion_tokens"] == 3


async def test_a_template_that_refuses_is_a_json_422(site: Site) -> None:
    answer = await chat(site, response_format={"type": "json", "value": {}}, tools=[WEATHER])
    assert (answer.status, answer.json["error_type"]) == (422, "tool_error")
    assert answer.json["error"] == "Tool error: Grammar and tools are mutually exclusive"


async def test_a_tool_that_is_not_offered_cannot_be_chosen(site: Site) -> None:
    answer = await chat(site, tools=[WEATHER], tool_choice={"type": "function", "function": {"name": "other"}})
    assert (answer.status, answer.json["error_type"]) == (422, "tool_error")


@pytest.mark.parametrize(
    "choice", ["required", "get_weather", {"type": "function", "function": {"name": "get_weather"}}]
)
async def test_a_required_tool_is_called(site: Site, choice: Any) -> None:
    answer = (await chat(site, tools=[WEATHER], tool_choice=choice, max_tokens=200)).json
    message = answer["choices"][0]["message"]
    assert list(message) == ["role", "tool_calls"]
    (call,) = message["tool_calls"]
    assert (call["id"], call["type"], call["function"]["name"]) == ("0", "function", "get_weather")
    assert orjson.loads(call["function"]["arguments"]) == {"city": "text"}
    assert answer["choices"][0]["finish_reason"] == "stop"


async def test_a_required_tool_is_called_in_a_stream(site: Site) -> None:
    events = (await chat(site, tools=[WEATHER], tool_choice="required", max_tokens=200, stream=True)).events
    functions = [event["choices"][0]["delta"]["tool_calls"][0]["function"] for event in events[:-1]]
    assert functions[0] == {"name": "get_weather", "arguments": "{"}
    assert {function["name"] for function in functions[1:]} == {None}


async def test_a_model_that_picks_no_tool_is_run_again_without_tools(site: Site) -> None:
    answers = []
    for words in range(12):
        messages = [{"role": "user", "content": "Hello" + " there" * words}]
        answers.append(await chat(site, messages=messages, tools=[WEATHER], max_tokens=200))
    texts = [answer for answer in answers if "content" in answer.json["choices"][0]["message"]]
    calls = [answer for answer in answers if "tool_calls" in answer.json["choices"][0]["message"]]
    assert texts
    assert calls
    # The second generation is told, whose prompt holds no tools.
    assert texts[0].json["usage"]["prompt_tokens"] < calls[0].json["usage"]["prompt_tokens"]
    streamed = (await chat(site, tools=[], tool_choice="auto", max_tokens=200, stream=True)).events
    assert "content" in streamed[0]["choices"][0]["delta"]


async def test_a_response_format_is_followed(site: Site) -> None:
    schema = {"type": "object", "properties": {"animal": {"type": "string"}, "legs": {"type": "integer"}}}
    answer = (await chat(site, response_format={"type": "json_object", "value": schema}, max_tokens=100)).json
    assert orjson.loads(answer["choices"][0]["message"]["content"]) == {"animal": "text", "legs": 1}


async def test_completions_answer_each_prompt_and_add_up(site: Site) -> None:
    answer = await complete(site, prompt=["Hello", "two words"])
    assert list(answer.json) == ["object", "id", "created", "model", "system_fingerprint", "choices", "usage"]
    assert [choice["index"] for choice in answer.json["choices"]] == [0, 1]
    assert [choice["finish_reason"] for choice in answer.json["choices"]] == ["length", "length"]
    prompt = counted("Hello", special=True) + counted("two words", special=True)
    assert answer.json["usage"] == {"prompt_tokens": prompt, "completion_tokens": 8, "total_tokens": prompt + 8}
    assert answer.headers["x-prompt-tokens"] == str(prompt)
    assert answer.headers["x-compute-characters"] == "14"
    assert "x-compute-time" not in answer.headers


async def test_a_completions_stream_has_empty_reasons_until_the_last_chunk(site: Site) -> None:
    events = (await complete(site, stream=True)).events
    assert [event["choices"][0]["finish_reason"] for event in events[:-1]] == ["", "", "", "length"]
    assert list(events[0]) == ["object", "id", "created", "choices", "model", "system_fingerprint"]
    assert list(events[3]) == ["object", "id", "created", "model", "system_fingerprint", "choices", "usage"]
    assert events[3]["usage"]["completion_tokens"] == 4
    assert events[4] == "[DONE]"


async def test_several_streamed_prompts_interleave_by_index(site: Site) -> None:
    events = (await complete(site, prompt=["a", "b", "c"], stream=True)).events
    assert [event["choices"][0]["index"] for event in events[:-1]] == [0, 1, 2] * 4


async def test_a_stream_of_completions_does_not_call_an_end_token_stop() -> None:
    async with simulated(output_mean_tokens=3.0) as site:
        events = (await complete(site, max_tokens=500, stream=True)).events
        whole = (await complete(site, max_tokens=500)).json
    assert events[-2]["choices"][0]["finish_reason"] == "eos_token"
    assert whole["choices"][0]["finish_reason"] == "stop"


async def test_what_completions_do_not_take_has_its_own_words(site: Site) -> None:
    suffix = await complete(site, suffix="x")
    many = await complete(site, prompt=["a"] * 5, stream=True)
    assert (suffix.status, suffix.json["error_type"]) == (422, "suffix not supported")
    assert (many.status, many.json) == (
        422,
        {
            "error": "Number of prompts exceeds the maximum allowed batch size of 4",
            "error_type": "batch size exceeded",
        },
    )


async def test_an_openai_stream_tells_every_error_with_the_same_status(site: Site) -> None:
    for answer in (await chat(site, stream=True, top_p=2), await complete(site, stream=True, top_p=2)):
        assert answer.status == 200
        assert answer.body == (
            b'data: {"error":{"message":"Input validation error: `top_p` must be > 0.0 and < 1.0",'
            b'"http_status_code":422}}\n\ndata: [DONE]\n\n'
        )


async def test_errors_of_older_streams_are_native_or_dropped() -> None:
    async with simulated({"version": "2.4.0", "max_batch_prefill_tokens": 8192}) as site:
        dropped, native = await chat(site, stream=True, top_p=2), await complete(site, stream=True, top_p=2)
    assert dropped.body == b"data: [DONE]\n\n"
    assert native.events[0]["error_type"] == "validation"


async def test_one_prompt_of_several_may_fail_alone() -> None:
    async with simulated({"max_concurrent_requests": 2}) as site:
        events = (await complete(site, prompt=["a", "b", "c"], stream=True)).events
        whole = await complete(site, prompt=["a", "b", "c"])
        state = await site.state()
    # The error is the third stream's only event, told when its turn comes.
    assert events[2] == {"error": {"message": "Model is overloaded", "http_status_code": 422}}
    others = [event["choices"][0]["index"] for event in events[:2] + events[3:-1]]
    assert others == [0, 1] * 4
    assert (whole.status, whole.json) == (429, {"error": "Model is overloaded", "error_type": "overloaded"})
    assert "retry-after" not in whole.headers
    assert state["permits_in_use"] == 0
