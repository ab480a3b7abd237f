"""The clients that people use against the simulated replica as a process: whole objects, field for field.

What is expected is what TGI's source says that the wire holds, as each client's own types show it. Texts are compared
with those that `/generate` tells of the same prompt; only the second in which an answer was made is masked.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import aiohttp
import pytest

from fakes.simulated_process import QUICK, head, simulated_process, usage

pytestmark = [
    pytest.mark.usefixtures("foreign_sockets"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # text_generation's own use of pydantic's old names
]

openai = pytest.importorskip("openai", reason="the clients extra is not installed")
huggingface_hub = pytest.importorskip("huggingface_hub", reason="the clients extra is not installed")
text_generation = pytest.importorskip("text_generation", reason="the clients extra is not installed")

MESSAGES: list[Any] = [{"role": "user", "content": "Why was this refused?"}]
PROMPT = "Why?"
CEILING = 5
LONG = 6000
"""Tokens of an answer that is not done before it is made to fail."""
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS: list[Any] = [{"type": "function", "function": {"name": "weather", "description": "now", "parameters": SCHEMA}}]
BROKEN = "Request failed during generation: Server error: CUDA out of memory"
INVALID = "Input validation error: `max_new_tokens` must be strictly positive"


@pytest.fixture(scope="module")
def replica() -> Iterator[str]:
    with simulated_process(*QUICK) as url:
        yield url


@pytest.fixture
async def url(replica: str) -> Any:
    yield replica
    await ask(replica, "/_simulate/faults", {})


async def ask(url: str, path: str, body: Any) -> Any:
    async with aiohttp.ClientSession() as session, session.post(url + path, json=body) as response:
        return {"value": await response.json(), "prompt": int(response.headers.get("x-prompt-tokens", "0"))}


async def told(url: str, inputs: str) -> tuple[list[dict[str, Any]], str, int]:
    """Return the tokens, the text and the prompt's length of a native generation."""
    parameters = {"max_new_tokens": CEILING, "details": True, "do_sample": True}
    answer = await ask(url, "/generate", {"inputs": inputs, "parameters": parameters})
    return answer["value"]["details"]["tokens"], answer["value"]["generated_text"], answer["prompt"]


async def rendered(url: str, **fields: Any) -> tuple[str, int]:
    value = (await ask(url, "/chat_tokenize", {"messages": MESSAGES, **fields}))["value"]
    return value["templated_text"], len(value["tokenize_response"])


def masked(value: Any) -> Any:
    """Return a client's object as plain data, without the second."""
    plain = value.to_dict() if hasattr(value, "to_dict") else asdict(value)
    assert plain["created"] > 1_500_000_000
    return {**plain, "created": 0}


def without_none(value: Any) -> Any:
    """Return plain data without fields of no value: clients add names that TGI does not send."""
    if isinstance(value, dict):
        return {name: without_none(part) for name, part in value.items() if part is not None}
    return [without_none(part) for part in value] if isinstance(value, list) else value


async def expected_chunks(url: str, *, with_usage: bool) -> list[dict[str, Any]]:
    text, prompt = await rendered(url)
    tokens, _, _ = await told(url, text)
    chunks: list[dict[str, Any]] = []
    for place, token in enumerate(tokens, 1):
        delta = {"role": "assistant", "content": token["text"]}
        reason = "length" if place == CEILING else None
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        chunks.append({**head("chat.completion.chunk"), "choices": [choice], "usage": None})
    if with_usage:
        chunks.append({**head("chat.completion.chunk"), "choices": [], "usage": usage(prompt, CEILING)})
    return chunks


async def expected_chat(url: str) -> dict[str, Any]:
    text, prompt = await rendered(url)
    _, content, _ = await told(url, text)
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "length"}
    return {**head("chat.completion"), "choices": [choice], "usage": usage(prompt, CEILING)}


# --- openai


def client(url: str) -> Any:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


async def test_openai_reads_a_chat(url: str) -> None:
    async with client(url) as api:
        answer = await api.chat.completions.create(model="tgi", messages=MESSAGES, max_tokens=CEILING)
    assert masked(answer) == await expected_chat(url)


@pytest.mark.parametrize("with_usage", [False, True], ids=["usage not asked", "usage asked"])
async def test_openai_reads_a_chat_stream(url: str, *, with_usage: bool) -> None:
    options = {"stream_options": {"include_usage": True}} if with_usage else {}
    async with client(url) as api:
        stream = await api.chat.completions.create(
            model="tgi", messages=MESSAGES, max_tokens=CEILING, stream=True, **options
        )
        chunks = [masked(chunk) async for chunk in stream]
    assert chunks == await expected_chunks(url, with_usage=with_usage)


async def test_openai_reads_a_completion_and_its_stream(url: str) -> None:
    tokens, text, prompt = await told(url, PROMPT)
    async with client(url) as api:
        whole = await api.completions.create(model="tgi", prompt=PROMPT, max_tokens=CEILING)
        stream = await api.completions.create(model="tgi", prompt=PROMPT, max_tokens=CEILING, stream=True)
        chunks = [masked(chunk) async for chunk in stream]
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": "length"}
    assert masked(whole) == {**head("text_completion"), "choices": [choice], "usage": usage(prompt, CEILING)}
    expected: list[dict[str, Any]] = [
        {
            **head("text_completion"),
            "choices": [{"index": 0, "text": token["text"], "logprobs": None, "finish_reason": ""}],
        }
        for token in tokens
    ]
    expected[-1]["choices"][0]["finish_reason"] = "length"
    expected[-1]["usage"] = usage(prompt, CEILING)
    assert chunks == expected


async def test_openai_reads_a_tool_call(url: str) -> None:
    asked = {"model": "tgi", "messages": MESSAGES, "tools": TOOLS, "tool_choice": "required", "max_tokens": 100}
    _, prompt = await rendered(url, tools=TOOLS, tool_choice="required")
    async with client(url) as api:
        answer = await api.chat.completions.create(**asked)
        stream = await api.chat.completions.create(**asked, stream=True)
        chunks = [masked(chunk) async for chunk in stream]
    function = {"description": None, "name": "weather", "arguments": '{"city":"text"}'}
    message = {"role": "assistant", "tool_calls": [{"id": "0", "type": "function", "function": function}]}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    completion = answer.usage.completion_tokens
    assert masked(answer) == {**head("chat.completion"), "choices": [choice], "usage": usage(prompt, completion)}
    pieces = [chunk["choices"][0]["delta"]["tool_calls"][0]["function"] for chunk in chunks]
    assert pieces[0] == {"name": "weather", "arguments": "{"}
    for chunk, piece in zip(chunks, pieces, strict=True):
        call = {"index": 0, "id": "0", "type": "function", "function": piece}
        delta = {"role": "assistant", "tool_calls": [call]}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        assert chunk == {**head("chat.completion.chunk"), "choices": [choice], "usage": None}


OPENAI_ERRORS: dict[str, tuple[dict[str, Any], int, str, int, str]] = {
    "429": ({"overloaded": True}, CEILING, "RateLimitError", 429, "Model is overloaded"),
    "422": ({}, 0, "UnprocessableEntityError", 422, INVALID),
    "424": ({"fail_after_events": 1}, LONG, "APIStatusError", 424, BROKEN),
}


@pytest.mark.parametrize(("fault", "ceiling", "kind", "status", "text"), OPENAI_ERRORS.values(), ids=OPENAI_ERRORS)
async def test_openai_sees_errors_by_status_and_inside_streams_by_text(
    url: str, fault: dict[str, Any], ceiling: int, kind: str, status: int, text: str
) -> None:
    await ask(url, "/_simulate/faults", fault)
    async with client(url) as api:
        with pytest.raises(getattr(openai, kind)) as caught:
            await api.chat.completions.create(model="tgi", messages=MESSAGES, max_tokens=ceiling)
        stream = await api.chat.completions.create(model="tgi", messages=MESSAGES, max_tokens=ceiling, stream=True)
        with pytest.raises(openai.APIError) as inside:
            [chunk async for chunk in stream]
    assert caught.value.status_code == status
    # The client takes what stands under `error`, here a text, for the body.
    assert caught.value.response.json()["error"] == text
    assert "retry-after" not in caught.value.response.headers
    # Whatever it was, the stream says 422.
    assert inside.value.body == {"message": text, "http_status_code": 422}
    assert inside.value.message == text


async def test_openai_lists_the_model(url: str) -> None:
    async with client(url) as api:
        models = [model.to_dict() async for model in api.models.list()]
    name = "llmshed/simulated"
    assert models == [{"id": name, "object": "model", "created": 0, "owned_by": name}]


# --- huggingface_hub, whose native calls go to the root route


async def test_huggingface_hub_reads_a_generation(url: str) -> None:
    tokens, text, _ = await told(url, PROMPT)
    async with huggingface_hub.AsyncInferenceClient(model=url) as api:
        plain = await api.text_generation(PROMPT, max_new_tokens=CEILING)
        whole = await api.text_generation(PROMPT, max_new_tokens=CEILING, details=True, return_full_text=False)
        stream = await api.text_generation(PROMPT, max_new_tokens=CEILING, details=True, stream=True)
        events = [without_none(asdict(event)) async for event in stream]
    assert plain == PROMPT + text
    details = {"finish_reason": "length", "generated_tokens": CEILING, "prefill": [], "tokens": tokens}
    assert without_none(asdict(whole)) == {"generated_text": text, "details": details}
    _, _, prompt = await told(url, PROMPT)
    expected: list[dict[str, Any]] = [{"index": place, "token": token} for place, token in enumerate(tokens, 1)]
    expected[-1]["generated_text"] = PROMPT + text
    expected[-1]["details"] = {"finish_reason": "length", "generated_tokens": CEILING, "input_length": prompt}
    assert events == expected


async def test_huggingface_hub_reads_a_chat_and_its_stream(url: str) -> None:
    async with huggingface_hub.AsyncInferenceClient(base_url=url) as api:
        whole = await api.chat_completion(MESSAGES, max_tokens=CEILING)
        stream = await api.chat_completion(
            MESSAGES, max_tokens=CEILING, stream=True, stream_options={"include_usage": True}
        )
        chunks = [without_none(masked(chunk)) async for chunk in stream]
    # These types have no `object`. The client sends a model of its own naming, which TGI takes for an adapter's.
    expected = [{**chunk} for chunk in await expected_chunks(url, with_usage=True)]
    for chunk in [*expected, chat := await expected_chat(url)]:
        del chunk["object"]
        chunk["model"] = "dummy"
    assert without_none(masked(whole)) == without_none(chat)
    assert chunks == without_none(expected)


KINDS: dict[str, tuple[dict[str, Any], int, str]] = {
    "overloaded": ({"overloaded": True}, CEILING, "OverloadedError"),
    "generation": ({"fail_after_events": 1}, LONG, "GenerationError"),
}
HUB_ERRORS = KINDS | {"validation": ({}, 0, "ValidationError")}


@pytest.mark.parametrize(("fault", "ceiling", "kind"), HUB_ERRORS.values(), ids=HUB_ERRORS)
async def test_huggingface_hub_tells_errors_by_their_kind(
    url: str, fault: dict[str, Any], ceiling: int, kind: str
) -> None:
    errors = huggingface_hub.errors
    await ask(url, "/_simulate/faults", fault)
    async with huggingface_hub.AsyncInferenceClient(model=url) as api:
        with pytest.raises(getattr(errors, kind)):
            await api.text_generation(PROMPT, max_new_tokens=ceiling)
        stream = await api.text_generation(PROMPT, max_new_tokens=ceiling, stream=True)
        with pytest.raises(getattr(errors, kind)):
            [event async for event in stream]


# --- text-generation


def text_generation_client(url: str) -> Any:
    return text_generation.AsyncClient(url)


async def test_text_generation_reads_a_generation_and_its_stream(url: str) -> None:
    tokens, text, prompt = await told(url, PROMPT)
    api = text_generation_client(url)
    whole = await api.generate(PROMPT, max_new_tokens=CEILING)
    events = [event async for event in api.generate_stream(PROMPT, max_new_tokens=CEILING)]
    assert whole.generated_text == text
    # This client asks for its prompt's tokens too, which TGI leaves out from 3.0 on.
    assert without_none(whole.model_dump(mode="json")["details"]) == {
        "finish_reason": "length",
        "generated_tokens": CEILING,
        "prefill": [],
        "tokens": tokens,
    }
    assert [event.model_dump(mode="json")["token"] for event in events] == tokens
    assert [event.generated_text for event in events] == [None] * 4 + [text]
    assert [event.details for event in events[:-1]] == [None] * 4
    last = events[-1].model_dump(mode="json")["details"]
    assert (last["finish_reason"], last["generated_tokens"], last["seed"]) == ("length", CEILING, None)
    assert last.get("input_length", prompt) == prompt


@pytest.mark.parametrize(("fault", "ceiling", "kind"), KINDS.values(), ids=KINDS)
async def test_text_generation_tells_errors_by_their_kind(
    url: str, fault: dict[str, Any], ceiling: int, kind: str
) -> None:
    await ask(url, "/_simulate/faults", fault)
    api = text_generation_client(url)
    error = getattr(text_generation.errors, kind)
    with pytest.raises(error):
        await api.generate(PROMPT, max_new_tokens=ceiling)
    with pytest.raises(error):
        [event async for event in api.generate_stream(PROMPT, max_new_tokens=ceiling)]


async def test_text_generation_is_told_what_is_too_long(url: str) -> None:
    error = text_generation.errors.ValidationError
    with pytest.raises(error, match="`inputs` tokens"):
        await text_generation_client(url).generate("word " * 9000, max_new_tokens=10)
