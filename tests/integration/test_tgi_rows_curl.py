"""The real curl against the simulated replica as a process: the whole head and every byte of the body.

Masked are the date, durations, and the second in which an answer was made. Made-up texts are compared with those that
`/generate` tells of the same prompt.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from fakes.curl import CORS, CURL, JSON, curl, streamed, work
from fakes.simulated_process import QUICK, framed, head, simulated_process, usage

pytestmark = pytest.mark.skipif(CURL is None, reason="curl is not installed")

HI = [{"role": "user", "content": "Why was this refused?"}]
PROMPT = "Why?"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
NATIVE = {"inputs": PROMPT, "parameters": {"max_new_tokens": 5}}
CHAT = {"messages": HI, "max_tokens": 5}
COMPLETION = {"prompt": PROMPT, "max_tokens": 5}
STREAMED_CHAT = {**CHAT, "stream": True}
STREAMED_COMPLETION = {**COMPLETION, "stream": True}


@pytest.fixture(scope="module")
def replica() -> Iterator[str]:
    with simulated_process(*QUICK) as url:
        yield url


@pytest.fixture
def url(replica: str) -> Iterator[str]:
    yield replica
    curl(f"{replica}/_simulate/faults", data={})


@dataclass(frozen=True, slots=True)
class Told:
    """What the replica makes of a text."""

    tokens: list[dict[str, Any]]
    text: str
    prompt: int


def told(url: str, inputs: str = PROMPT, ceiling: int = 5) -> Told:
    parameters = {"max_new_tokens": ceiling, "details": True, "do_sample": True}
    answer = curl(f"{url}/generate", data={"inputs": inputs, "parameters": parameters})
    value = orjson.loads(answer.body)
    return Told(value["details"]["tokens"], value["generated_text"], int(answer.head["x-prompt-tokens"]))


def rendered(url: str, **fields: Any) -> tuple[str, int]:
    value = orjson.loads(curl(f"{url}/chat_tokenize", data={"messages": HI, **fields}).body)
    return value["templated_text"], len(value["tokenize_response"])


# --- answers


def test_generate(url: str) -> None:
    one = told(url)
    answer = curl(f"{url}/generate", data=NATIVE)
    assert answer.line == "HTTP/1.1 200 OK"
    assert answer.body == orjson.dumps({"generated_text": one.text})
    assert answer.head == work(len(PROMPT), one.prompt, 5, answer.body)


def test_generate_with_details(url: str) -> None:
    one = told(url)
    body = {"inputs": PROMPT, "parameters": {"max_new_tokens": 5, "details": True, "seed": 3, "do_sample": True}}
    seeded = orjson.loads(curl(f"{url}/generate", data=body).body)
    details = {"finish_reason": "length", "generated_tokens": 5, "seed": 3, "prefill": []}
    assert seeded["details"] == {**details, "tokens": seeded["details"]["tokens"]}
    assert list(seeded["details"]) == [*details, "tokens"]
    greedy = {**NATIVE, "parameters": {"max_new_tokens": 5, "details": True}}
    expected = {"generated_text": one.text, "details": {**details, "seed": None, "tokens": one.tokens}}
    assert curl(f"{url}/generate", data=greedy).body == orjson.dumps(expected)


def test_the_root(url: str) -> None:
    one = told(url)
    answer = curl(f"{url}/", data=NATIVE)
    assert answer.body == orjson.dumps([{"generated_text": PROMPT + one.text}])
    assert answer.head == work(len(PROMPT), one.prompt, 5, answer.body)


def test_chat(url: str) -> None:
    text, prompt = rendered(url)
    message = {"role": "assistant", "content": told(url, text).text}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "length"}
    answer = curl(f"{url}/v1/chat/completions", data=CHAT)
    assert answer.line == "HTTP/1.1 200 OK"
    assert answer.masked == orjson.dumps({**head("chat.completion"), "choices": [choice], "usage": usage(prompt, 5)})
    assert answer.head == work(len(text), prompt, 5, answer.body)


def test_completion(url: str) -> None:
    one = told(url)
    choice = {"index": 0, "text": one.text, "logprobs": None, "finish_reason": "length"}
    answer = curl(f"{url}/v1/completions", data=COMPLETION)
    assert answer.masked == orjson.dumps(
        {**head("text_completion"), "choices": [choice], "usage": usage(one.prompt, 5)}
    )
    expected = work(len(PROMPT), one.prompt, 5, answer.body)
    del expected["x-compute-time"]
    assert answer.head == expected


def test_a_tool_call(url: str) -> None:
    body = {**CHAT, "max_tokens": 100, "tools": [WEATHER], "tool_choice": "required"}
    text, prompt = rendered(url, tools=[WEATHER], tool_choice="required")
    answer = curl(f"{url}/v1/chat/completions", data=body)
    completion = int(answer.head["x-generated-tokens"])
    function = {"description": None, "name": "weather", "arguments": '{"city":"text"}'}
    message = {"role": "assistant", "tool_calls": [{"id": "0", "type": "function", "function": function}]}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    assert answer.masked == orjson.dumps(
        {**head("chat.completion"), "choices": [choice], "usage": usage(prompt, completion)}
    )
    assert answer.head == work(len(text), prompt, completion, answer.body)


# --- streams


def test_generate_stream(url: str) -> None:
    one = told(url)
    answer = curl(f"{url}/generate_stream", data={**NATIVE, "parameters": {"max_new_tokens": 5, "details": True}})
    events: list[dict[str, Any]] = [
        {"index": place, "token": token, "generated_text": None, "details": None}
        for place, token in enumerate(one.tokens, 1)
    ]
    details = {"finish_reason": "length", "generated_tokens": 5, "seed": None, "input_length": one.prompt}
    events[-1] |= {"generated_text": one.text, "details": details}
    assert answer.line == "HTTP/1.1 200 OK"
    assert answer.head == streamed(len(PROMPT))
    assert answer.body == framed(events)


def test_each_event_is_a_chunk_of_its_own(url: str) -> None:
    plain = curl(f"{url}/generate_stream", data=NATIVE).body
    raw = curl(f"{url}/generate_stream", "--raw", data=NATIVE).body
    chunks = [event + b"\n\n" for event in plain.split(b"\n\n")[:-1]]
    assert raw.lower() == b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in chunks).lower() + b"0\r\n\r\n"


@pytest.mark.parametrize("asks_usage", [False, True], ids=["usage not asked", "usage asked"])
def test_chat_stream(url: str, *, asks_usage: bool) -> None:
    text, prompt = rendered(url)
    one = told(url, text)
    options = {"stream_options": {"include_usage": True}} if asks_usage else {}
    answer = curl(f"{url}/v1/chat/completions", data={**STREAMED_CHAT, **options})
    events: list[Any] = []
    for place, token in enumerate(one.tokens, 1):
        delta = {"role": "assistant", "content": token["text"]}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": "length" if place == 5 else None}
        events.append({**head("chat.completion.chunk"), "choices": [choice], "usage": None})
    if asks_usage:
        events.append({**head("chat.completion.chunk"), "choices": [], "usage": usage(prompt, 5)})
    assert answer.head == streamed(len(text))
    assert answer.masked == framed([*events, "[DONE]"])


def test_completion_stream(url: str) -> None:
    one = told(url)
    answer = curl(f"{url}/v1/completions", data=STREAMED_COMPLETION)
    whole = head("text_completion")
    events: list[Any] = []
    for token in one.tokens:
        choice = {"index": 0, "text": token["text"], "logprobs": None, "finish_reason": ""}
        start = {name: whole[name] for name in ("object", "id", "created")}
        end = {name: whole[name] for name in ("model", "system_fingerprint")}
        events.append({**start, "choices": [choice], **end})
    last = {**events[-1]["choices"][0], "finish_reason": "length"}
    events[-1] = {**whole, "choices": [last], "usage": usage(one.prompt, 5)}
    assert answer.head == streamed(len(PROMPT))
    assert answer.masked == framed([*events, "[DONE]"])


# --- what it tells of itself


def test_health_info_and_models(url: str) -> None:
    health, info, models = (curl(url + path) for path in ("/health", "/info", "/v1/models"))
    assert (health.line, health.body) == ("HTTP/1.1 200 OK", b"")
    assert health.head == {**CORS, "content-length": "0"}
    assert info.head == {**JSON, "content-length": str(len(info.body))}
    assert info.body == (
        b'{"model_id":"llmshed/simulated","model_sha":null,"model_pipeline_tag":null,"max_concurrent_requests":128,'
        b'"max_best_of":2,"max_stop_sequences":4,"max_input_tokens":8191,"max_total_tokens":8192,"validation_workers":2,'
        b'"max_client_batch_size":4,"router":"text-generation-router","version":"3.3.5","sha":null,"docker_label":null}'
    )
    model = b'{"id":"llmshed/simulated","object":"model","created":0,"owned_by":"llmshed/simulated"}'
    assert models.body == b'{"object":"list","data":[' + model + b"]}"


def test_a_preflight(url: str) -> None:
    answer = curl(f"{url}/generate", "-X", "OPTIONS", "-H", "Origin: https://example.org")
    assert (answer.line, answer.body) == ("HTTP/1.1 200 OK", b"")
    assert answer.head["access-control-allow-methods"] == "GET,POST"
    assert answer.head["access-control-allow-headers"] == "content-type"


def test_ill_health(url: str) -> None:
    curl(f"{url}/_simulate/faults", data={"unhealthy": True})
    answer = curl(f"{url}/health")
    assert answer.line == "HTTP/1.1 503 Service Unavailable"
    assert answer.body == b'{"error":"unhealthy","error_type":"healthcheck"}'
    assert answer.head == {**JSON, "content-length": str(len(answer.body))}
