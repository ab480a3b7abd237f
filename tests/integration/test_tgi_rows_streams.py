"""TGI's streams and answers, every byte of them: what is expected is built from the tokens that the native route tells.

Only the second in which an answer was made is masked. Each row's id is a version and a route.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
import pytest_asyncio

from fakes.simulated import Answer, Site, simulated

HI = [{"role": "user", "content": "Hello"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "of a city", "parameters": SCHEMA}}
VERSIONS = ("1.4.5", "2.4.0", "3.0.1", "3.3.5")
DONE = "[DONE]"


def old(version: str) -> dict[str, Any]:
    return {"version": version, "max_batch_prefill_tokens": 8192}


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with simulated() as running:
        yield running


@dataclass(frozen=True, slots=True)
class Told:
    """A generation as the native route tells it: its tokens, why it ended and its input."""

    tokens: list[dict[str, Any]]
    reason: str
    prompt: int
    text: str


async def told(site: Site, inputs: str, ceiling: int = 4, **parameters: Any) -> Told:
    """Generate natively; a rendered chat gives the same text there as in a chat."""
    body = {
        "inputs": inputs,
        "parameters": {"max_new_tokens": ceiling, "details": True, "do_sample": True, **parameters},
    }
    answer = await site.post("/generate", body)
    details = answer.json["details"]
    prompt = int(answer.headers["x-prompt-tokens"])
    return Told(details["tokens"], details["finish_reason"], prompt, answer.json["generated_text"])


async def rendered(site: Site, messages: Any = HI) -> tuple[str, int]:
    """Return a chat's text and its tokens; where TGI has no route for it, those of a replica that has."""
    answer = await site.post("/chat_tokenize", {"messages": messages})
    if answer.status == 404:
        async with simulated() as newer:
            answer = await newer.post("/chat_tokenize", {"messages": messages})
    return answer.json["templated_text"], len(answer.json["tokenize_response"])


def masked(answer: Answer) -> bytes:
    return re.sub(rb'"created":\d{10},', b'"created":0,', answer.body)


def framed(events: Iterable[Any], version: str = "3.3.5") -> bytes:
    """Write events as axum does: one line and an empty one, before 2.1 without a space behind the colon."""
    field = b"data:" if version == "1.4.5" else b"data: "
    lines = (event.encode() if isinstance(event, str) else orjson.dumps(event) for event in events)
    return b"".join(field + line + b"\n\n" for line in lines)


def usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def head(kind: str, version: str, model: str = "llmshed/simulated") -> dict[str, Any]:
    return {"object": kind, "id": "", "created": 0, "model": model, "system_fingerprint": f"{version}-native"}


def openai_reason(reason: str, version: str) -> str:
    return "stop" if reason == "eos_token" and version != "1.4.5" else reason


# --- native


NATIVE = {
    "without details the last event has only the text": {"details": False},
    "with details it has reason, tokens, seed and, from 2.3 on, input": {"details": True},
    "top tokens are told when asked": {"top_n_tokens": 2},
    "the prompt is repeated when asked": {"return_full_text": True},
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("parameters", NATIVE.values(), ids=NATIVE)
async def test_a_native_stream(version: str, parameters: dict[str, Any]) -> None:
    async with simulated(old(version)) as site:
        one = await told(
            site, "Tell me", seed=5, **{key: parameters[key] for key in parameters if key == "top_n_tokens"}
        )
        asked = {"max_new_tokens": 4, "do_sample": True, "seed": 5, **parameters}
        answer = await site.post("/generate_stream", {"inputs": "Tell me", "parameters": asked})
        whole = await site.post("/generate", {"inputs": "Tell me", "parameters": {**asked, "details": True}})
    tops = whole.json["details"].get("top_tokens")
    events: list[dict[str, Any]] = []
    for place, token in enumerate(one.tokens):
        top = {"top_tokens": tops[place]} if tops else {}
        events.append({"index": place + 1, "token": token, **top, "generated_text": None, "details": None})
    prefix = "Tell me" if "return_full_text" in parameters else ""
    events[-1]["generated_text"] = prefix + one.text
    if parameters.get("details"):
        details = {"finish_reason": "length", "generated_tokens": 4, "seed": 5}
        events[-1]["details"] = details | ({} if version == "1.4.5" else {"input_length": one.prompt})
    assert answer.body == framed(events, version)
    assert ("top_tokens" in whole.json["details"]) == ("top_n_tokens" in parameters)


# --- chats


@pytest.mark.parametrize("asks_usage", [False, True], ids=["usage not asked", "usage asked"])
@pytest.mark.parametrize("version", [*VERSIONS, "3.2.0"])
async def test_a_chat_stream(version: str, *, asks_usage: bool) -> None:
    async with simulated(old(version), output_mean_tokens=6.0) as site:
        text, prompt = await rendered(site)
        one = await told(site, text, 500)
        fields = {"stream_options": {"include_usage": True}} if asks_usage else {}
        body = {"model": "tgi", "messages": HI, "max_tokens": 500, "stream": True, **fields}
        answer = await site.post("/v1/chat/completions", body)
    assert one.reason == "eos_token"
    counted = usage(prompt, len(one.tokens))
    events: list[Any] = []
    for token in one.tokens:
        delta = {"role": "assistant", "content": "" if token["special"] else token["text"]}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        events.append({**head("chat.completion.chunk", version), "choices": [choice]})
    events[-1]["choices"][0]["finish_reason"] = openai_reason(one.reason, version)
    if version != "1.4.5":
        events = [{**event, "usage": None} for event in events]
        if asks_usage and version < "3.2":
            events[-1]["usage"] = counted
        elif asks_usage:
            events.append({**head("chat.completion.chunk", version), "choices": [], "usage": counted})
        events.append(DONE)
    assert masked(answer) == framed(events, version)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_whole_chat(version: str) -> None:
    async with simulated(old(version)) as site:
        text, prompt = await rendered(site)
        one = await told(site, text)
        answer = await site.post("/v1/chat/completions", {"model": "mine", "messages": HI, "max_tokens": 4})
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": one.text},
        "logprobs": None,
        "finish_reason": "length",
    }
    model = "mine" if version > "3" else "llmshed/simulated"
    expected = {**head("chat.completion", version, model), "choices": [choice], "usage": usage(prompt, 4)}
    assert masked(answer) == orjson.dumps(expected)


async def test_log_probabilities_in_a_chat_and_its_stream(site: Site) -> None:
    text, _ = await rendered(site)
    one = await told(site, text, top_n_tokens=2)
    body = {"messages": HI, "max_tokens": 4, "logprobs": True, "top_logprobs": 2}
    whole = await site.post("/v1/chat/completions", body)
    stream = await site.post("/v1/chat/completions", {**body, "stream": True})
    bare = await site.post("/v1/chat/completions", {"messages": HI, "max_tokens": 4, "logprobs": True})
    content = whole.json["choices"][0]["logprobs"]["content"]
    assert [list(place) for place in content] == [["token", "logprob", "top_logprobs"]] * 4
    assert [(place["token"], place["logprob"]) for place in content] == [(t["text"], t["logprob"]) for t in one.tokens]
    assert [len(place["top_logprobs"]) for place in content] == [2] * 4
    chunks = [event["choices"][0]["logprobs"] for event in stream.events[:-1]]
    assert chunks == [{"content": [place]} for place in content]
    plain = bare.json["choices"][0]["logprobs"]["content"]
    assert plain == [{**place, "top_logprobs": []} for place in content]


# --- tools


async def test_a_tool_call_in_a_whole_chat(site: Site) -> None:
    body = {"messages": HI, "tools": [WEATHER], "tool_choice": "required", "max_tokens": 200}
    answer = await site.post("/v1/chat/completions", body)
    rendering = await site.post("/chat_tokenize", body)
    prompt, completion = len(rendering.json["tokenize_response"]), answer.json["usage"]["completion_tokens"]
    function = {"description": None, "name": "get_weather", "arguments": '{"city":"text"}'}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "tool_calls": [{"id": "0", "type": "function", "function": function}]},
        "logprobs": None,
        "finish_reason": "stop",
    }
    expected = {**head("chat.completion", "3.3.5"), "choices": [choice], "usage": usage(prompt, completion)}
    assert masked(answer) == orjson.dumps(expected)


@pytest.mark.parametrize("asks_usage", [False, True], ids=["usage not asked", "usage asked"])
async def test_a_tool_call_in_a_stream(site: Site, *, asks_usage: bool) -> None:
    """First the name and a brace, then the arguments as they come, without the call's last brace.

    No chunk tells a finish reason: the end token adds nothing to the call, so that no chunk is made of it.
    """
    body = {"messages": HI, "tools": [WEATHER], "tool_choice": "required", "max_tokens": 200, "stream": True}
    fields = {"stream_options": {"include_usage": True}} if asks_usage else {}
    answer = await site.post("/v1/chat/completions", {**body, **fields})
    chunks = [event for event in answer.events[:-1] if event["choices"]]
    pieces = [chunk["choices"][0]["delta"]["tool_calls"][0]["function"] for chunk in chunks]
    assert pieces[0] == {"name": "get_weather", "arguments": "{"}
    assert {piece["name"] for piece in pieces[1:]} == {None}
    # The brace that TGI puts first stands for the call's own name; what the model wrote comes behind it.
    assert orjson.loads("{" + "".join(piece["arguments"] for piece in pieces[1:]).lstrip(", ")) == {"city": "text"}
    expected: list[Any] = []
    for function in pieces:
        call = {"index": 0, "id": "0", "type": "function", "function": function}
        delta = {"role": "assistant", "tool_calls": [call]}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        expected.append({**head("chat.completion.chunk", "3.3.5"), "choices": [choice], "usage": None})
    if asks_usage:
        whole = (await site.post("/v1/chat/completions", {**body, "stream": False})).json["usage"]
        expected.append({**head("chat.completion.chunk", "3.3.5"), "choices": [], "usage": whole})
    assert masked(answer) == framed([*expected, DONE])


async def test_a_later_call_of_a_conversation_has_the_next_number(site: Site) -> None:
    call = {"id": "2", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Ulm"}}}
    turns = [*HI, {"role": "assistant", "tool_calls": [call]}, {"role": "user", "content": "And in Bonn?"}]
    body = {"messages": turns, "tools": [WEATHER], "tool_choice": "required", "max_tokens": 200, "stream": True}
    events = (await site.post("/v1/chat/completions", body)).events[:-1]
    assert {event["choices"][0]["delta"]["tool_calls"][0]["id"] for event in events} == {"3"}


# --- completions


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_completion_stream(version: str) -> None:
    async with simulated(old(version), output_mean_tokens=6.0) as site:
        one = await told(site, "Hello there", 500)
        body = {"model": "tgi", "prompt": "Hello there", "max_tokens": 500, "stream": True}
        answer = await site.post("/v1/completions", body)
    assert one.reason == "eos_token"
    start, events = head("text_completion", version), []
    for token in one.tokens:
        choice = {"index": 0, "text": token["text"], "logprobs": None, "finish_reason": ""}
        parts = {name: start[name] for name in ("object", "id", "created")} | {"choices": [choice]}
        events.append({**parts, "model": start["model"], "system_fingerprint": start["system_fingerprint"]})
    if version != "1.4.5":
        choice = {**events[-1]["choices"][0], "finish_reason": "eos_token"}
        events[-1] = {**start, "choices": [choice], "usage": usage(one.prompt, len(one.tokens))}
    assert masked(answer) == framed([*events, *([] if version == "1.4.5" else [DONE])], version)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_whole_completion(version: str) -> None:
    async with simulated(old(version), output_mean_tokens=6.0) as site:
        one = await told(site, "Hello there", 500)
        answer = await site.post("/v1/completions", {"model": "tgi", "prompt": "Hello there", "max_tokens": 500})
    reason = openai_reason(one.reason, version)
    choice = {"index": 0, "text": one.text, "logprobs": None, "finish_reason": reason}
    counted = usage(one.prompt, len(one.tokens))
    assert masked(answer) == orjson.dumps({**head("text_completion", version), "choices": [choice], "usage": counted})


async def test_streamed_prompts_take_turns_and_each_ends_with_its_usage(site: Site) -> None:
    prompts = ["Hello", "one two three"]
    events = (await site.post("/v1/completions", {"prompt": prompts, "max_tokens": 3, "stream": True})).events
    assert [event["choices"][0]["index"] for event in events[:-1]] == [0, 1] * 3
    last = [event for event in events[:-1] if "usage" in event]
    assert [event["choices"][0]["finish_reason"] for event in last] == ["length"] * 2
    counts = [len((await site.post("/tokenize", {"inputs": prompt})).json) for prompt in prompts]
    assert [event["usage"] for event in last] == [usage(count, 3) for count in counts]
    assert events[-1] == DONE


# --- ends


STOPS = {
    "native": ("/generate_stream", "stop_sequence"),
    "chat": ("/v1/chat/completions", "stop_sequence"),
    "completion": ("/v1/completions", "stop_sequence"),
}


@pytest.mark.parametrize(("path", "reason"), STOPS.values(), ids=STOPS)
async def test_a_stop_text_is_its_own_reason_everywhere_and_stays(site: Site, path: str, reason: str) -> None:
    text, _ = await rendered(site)
    free = await told(site, text if "chat" in path else "Hello", 30)
    stop = free.tokens[5]["text"]
    if path == "/generate_stream":
        body: dict[str, Any] = {
            "inputs": "Hello",
            "parameters": {"max_new_tokens": 30, "stop": [stop], "details": True, "do_sample": True},
        }
    else:
        body = {"messages": HI, "prompt": "Hello", "max_tokens": 30, "stop": [stop], "stream": True}
    events = [event for event in (await site.post(path, body)).events if event != DONE]
    if path == "/generate_stream":
        assert events[-1]["details"]["finish_reason"] == reason
        assert events[-1]["generated_text"].endswith(stop)
    else:
        last = events[-1]["choices"][0]
        assert last["finish_reason"] == reason
        assert (last["delta"]["content"] if "delta" in last else last["text"]) == stop
        whole = (await site.post(path, {**body, "stream": False})).json["choices"][0]
        assert whole["finish_reason"] == reason


# --- silence


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/generate_stream", {"inputs": "Hello", "parameters": {"max_new_tokens": 1}}),
        ("/v1/chat/completions", {"messages": HI, "max_tokens": 1, "stream": True}),
        ("/v1/completions", {"prompt": "Hello", "max_tokens": 1, "stream": True}),
    ],
    ids=["native", "chat", "completion"],
)
async def test_a_silent_stream_has_sent_its_head_and_sends_comments(path: str, body: dict[str, Any]) -> None:
    async with simulated(keep_alive_seconds=0.02) as site:
        await site.post("/_simulate/faults", {"stall_seconds": "forever"})
        async with site.session.post(site.url + path, json=body) as response:
            assert (response.status, response.headers["content-type"]) == (200, "text/event-stream")
            assert await response.content.readexactly(6) == b":\n\n:\n\n"
            await site.post("/_simulate/faults", {"stall_seconds": 0})
            rest = await response.read()
    assert b"data: {" in rest


async def test_a_stream_is_silent_for_fifteen_seconds_before_the_first_comment(site: Site) -> None:
    assert site.emulator.settings.keep_alive_seconds == 15
    await site.post("/_simulate/faults", {"stall_seconds": "forever"})
    body = {"inputs": "Hello", "parameters": {"max_new_tokens": 1}}
    async with site.session.post(f"{site.url}/generate_stream", json=body) as response:
        assert response.status == 200
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await response.content.readexactly(1)
        response.close()


@pytest.mark.parametrize(
    "body", [{"stream": True}, {"stream": True, "prompt": ["a", "b"]}], ids=["one prompt", "several"]
)
async def test_the_head_of_a_stream(site: Site, body: dict[str, Any]) -> None:
    answer = await site.post("/v1/completions", {"prompt": "Hello", "max_tokens": 1, **body})
    told = {name.lower(): value for name, value in answer.headers.items()}
    assert told["cache-control"] == "no-cache"
    assert told["transfer-encoding"] == "chunked"
    assert "content-length" not in told
    # Neither event names nor ids nor retry times.
    assert not re.search(rb"^(event|id|retry):", answer.body, re.MULTILINE)
