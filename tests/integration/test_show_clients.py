"""Real clients at the gateway's door: answers and streams, on native and OpenAI routes, under the key of a tenant."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import orjson
import pytest

from fakes.engine import Conversation
from fakes.house import House, house, until
from fakes.talking_tgi import TalkingTgi

pytestmark = pytest.mark.usefixtures("foreign_sockets")

T = TypeVar("T")

KEY = "sk-of-acme"
MESSAGES = [{"role": "user", "content": "Tell me of the sea."}]
TOKENS = 12


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[House]:
    keys = tmp_path / "keys"
    keys.write_text(f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}\n")
    keys.chmod(0o600)
    async with house(f'[[tenants]]\nname = "acme"\nkeys_file = "{keys}"\n', pool="release_grace_seconds = 0.05") as one:
        yield one


async def blocking(work: Callable[[], T]) -> T:
    """Run a client that blocks beside the gateway's loop."""
    return await asyncio.to_thread(work)


def assert_served(gate: House, requests: int, *, streamed: bool) -> None:
    """Every request was finished under its tenant with the tokens that it asked for."""
    last = gate.decisions[-requests:]
    assert [(line["tenant"], line["ending"], line["termination"], line["output_tokens"]) for line in last] == [
        ("acme", "finished", "--", TOKENS)
    ] * requests
    assert {line["streamed"] for line in last} == {streamed}


# What openai asks of the chat and completions routes.


@pytest.fixture
def openai() -> ModuleType:
    module: ModuleType = pytest.importorskip("openai", reason="extra `clients` is not installed")
    return module


async def test_openai_gets_whole_answers(gate: House, openai: ModuleType) -> None:
    def ask() -> tuple[Any, Any, Any]:
        with openai.OpenAI(base_url=f"{gate.data}/v1", api_key=KEY, max_retries=0) as client:
            chat = client.chat.completions.with_raw_response.create(
                model="llmshed/simulated", messages=MESSAGES, max_tokens=TOKENS
            )
            text = client.completions.create(model="tgi", prompt="Tell me of the sea.", max_tokens=TOKENS)
            return chat, text, client.models.list()

    chat, text, models = await blocking(ask)
    answer = chat.parse()
    assert answer.choices[0].message.content
    assert (answer.choices[0].finish_reason, answer.usage.completion_tokens) == ("length", TOKENS)
    assert chat.headers["x-llmshed-input-tokens"] == str(answer.usage.prompt_tokens)
    assert chat.headers["x-llmshed-reserved-tokens"] == str(answer.usage.total_tokens)
    assert text.choices[0].text
    assert text.usage.completion_tokens == TOKENS
    assert [model.id for model in models] == ["llmshed/simulated"]
    assert_served(gate, 2, streamed=False)


async def test_openai_gets_streams(gate: House, openai: ModuleType) -> None:
    def ask() -> tuple[list[Any], list[Any]]:
        with openai.OpenAI(base_url=f"{gate.data}/v1", api_key=KEY, max_retries=0) as client:
            chat = client.chat.completions.create(
                model="tgi",
                messages=MESSAGES,
                max_tokens=TOKENS,
                stream=True,
                stream_options={"include_usage": True},
            )
            text = client.completions.create(model="tgi", prompt="The sea", max_tokens=TOKENS, stream=True)
            return list(chat), list(text)

    chat, text = await blocking(ask)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chat if chunk.choices)
    assert [chunk.usage.completion_tokens for chunk in chat if chunk.usage] == [TOKENS]
    assert [chunk.choices[0].finish_reason for chunk in chat if chunk.choices][-1] == "length"
    assert "".join(chunk.choices[0].text for chunk in text)
    assert_served(gate, 2, streamed=True)


async def test_openai_asynchronous_client_streams_and_may_leave(gate: House, openai: ModuleType) -> None:
    async with openai.AsyncOpenAI(base_url=f"{gate.data}/v1", api_key=KEY, max_retries=0) as client:
        ask = client.chat.completions.create
        stream = await ask(model="tgi", messages=MESSAGES, max_tokens=TOKENS, stream=True)
        assert len([chunk async for chunk in stream]) >= TOKENS
        assert_served(gate, 1, streamed=True)
        left = await ask(model="tgi", messages=MESSAGES, max_tokens=4000, stream=True)
        await anext(aiter(left))
        await left.close()
        await until(lambda: gate.active_tokens() == 0)
        assert gate.decisions[-1]["termination"] == "CD"


async def test_openai_without_a_right_key_is_told_so(gate: House, openai: ModuleType) -> None:
    async with openai.AsyncOpenAI(base_url=f"{gate.data}/v1", api_key="sk-wrong", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError):
            await client.chat.completions.create(model="tgi", messages=MESSAGES)


async def test_openai_sees_what_is_too_long_and_what_must_wait(gate: House, openai: ModuleType) -> None:
    async with openai.AsyncOpenAI(base_url=f"{gate.data}/v1", api_key=KEY, max_retries=0) as client:
        ask = client.chat.completions.create
        with pytest.raises(openai.APIStatusError, match="context_limit") as too_long:
            await ask(model="tgi", messages=[{"role": "user", "content": "sea " * 20_000}], max_tokens=1)
        assert too_long.value.status_code == 413
        running = await ask(model="tgi", messages=MESSAGES, max_tokens=4500, stream=True)
        with pytest.raises(openai.RateLimitError, match="token_budget_exhausted") as busy:
            await ask(model="tgi", messages=MESSAGES, max_tokens=4000, stream=True)
        error = busy.value
        assert (error.code, error.type) == ("token_budget_exhausted", "rate_limit_error")
        assert error.request_id == error.body["request_id"] == gate.decisions[-1]["request_id"]
        assert error.body["retry_after_ms"] == int(error.response.headers["retry-after-ms"])
        assert error.body["limits"]["max_total_tokens"] == 8192
        # The client tells that it bears 600 s of silence unless it is told otherwise, which is no deadline of anybody.
        with pytest.raises(openai.RateLimitError, match="token_budget_exhausted"):
            await ask(model="tgi", messages=MESSAGES, max_tokens=4001)
        await running.close()


async def test_only_streams_of_the_openai_routes_end_with_done(gate: House) -> None:
    key = {"Authorization": f"Bearer {KEY}"}
    native = await gate.post("/generate_stream", {"inputs": "The sea", "parameters": {"max_new_tokens": TOKENS}}, key)
    chat = await gate.post("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": TOKENS, "stream": True}, key)
    assert (native.status, native.body.count(b"data:"), b"[DONE]" in native.body) == (200, TOKENS, False)
    assert chat.body.endswith(b"data: [DONE]\n\n")


# What huggingface_hub asks of the native routes and the chat route.


@pytest.fixture
def hub() -> ModuleType:
    module: ModuleType = pytest.importorskip("huggingface_hub", reason="extra `clients` is not installed")
    return module


async def test_huggingface_hub_gets_whole_answers(gate: House, hub: ModuleType) -> None:
    def ask() -> tuple[Any, Any, Any]:
        client = hub.InferenceClient(model=gate.data, token=KEY)
        plain = client.text_generation("Tell me of the sea.", max_new_tokens=TOKENS)
        details = client.text_generation("Tell me of the sea.", max_new_tokens=TOKENS, details=True)
        chat = hub.InferenceClient(base_url=f"{gate.data}/v1", api_key=KEY)
        return plain, details, chat.chat_completion(MESSAGES, max_tokens=TOKENS)

    plain, details, chat = await blocking(ask)
    assert plain
    assert (details.details.generated_tokens, details.details.finish_reason) == (TOKENS, "length")
    assert chat.choices[0].message.content
    assert chat.usage.completion_tokens == TOKENS
    assert_served(gate, 3, streamed=False)


async def test_huggingface_hub_gets_streams(gate: House, hub: ModuleType) -> None:
    def ask() -> tuple[list[Any], list[Any], list[Any]]:
        client = hub.InferenceClient(model=gate.data, token=KEY)
        plain = client.text_generation("Tell me of the sea.", max_new_tokens=TOKENS, stream=True)
        details = client.text_generation("The sea", max_new_tokens=TOKENS, stream=True, details=True)
        chat = hub.InferenceClient(base_url=f"{gate.data}/v1", api_key=KEY)
        return list(plain), list(details), list(chat.chat_completion(MESSAGES, max_tokens=TOKENS, stream=True))

    plain, details, chat = await blocking(ask)
    assert len(plain) == TOKENS
    assert details[-1].details.generated_tokens == TOKENS
    assert len(details) == TOKENS
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chat)
    assert_served(gate, 3, streamed=True)


async def test_huggingface_hub_asynchronous_client_gets_both(gate: House, hub: ModuleType) -> None:
    pytest.importorskip("aiohttp")
    async with hub.AsyncInferenceClient(model=gate.data, token=KEY) as client:
        whole = await client.text_generation("Tell me of the sea.", max_new_tokens=TOKENS)
        assert whole
        assert_served(gate, 1, streamed=False)
        stream = await client.text_generation("Tell me of the sea.", max_new_tokens=TOKENS, stream=True)
        assert len([token async for token in stream]) == TOKENS
        assert_served(gate, 1, streamed=True)


# TGI's own client; it still calls pydantic 1's names.
old_pydantic = [
    pytest.mark.filterwarnings("ignore:The `dict` method is deprecated"),
    pytest.mark.filterwarnings("ignore:The `parse_obj` method is deprecated"),
]


@pytest.fixture
def text_generation() -> ModuleType:
    module: ModuleType = pytest.importorskip("text_generation", reason="extra `clients` is not installed")
    return module


class TestTextGeneration:
    pytestmark = old_pydantic

    @pytest.fixture
    def arguments(self, gate: House) -> dict[str, Any]:
        return {"base_url": gate.data, "headers": {"Authorization": f"Bearer {KEY}"}}

    async def test_whole_answers(self, gate: House, text_generation: ModuleType, arguments: dict[str, Any]) -> None:
        def ask() -> tuple[Any, Any]:
            client = text_generation.Client(**arguments)
            native = client.generate("Tell me of the sea.", max_new_tokens=TOKENS)
            return native, client.chat(messages=MESSAGES, max_tokens=TOKENS)

        native, chat = await blocking(ask)
        assert native.generated_text
        assert native.details.generated_tokens == TOKENS
        assert chat.choices[0].message.content
        assert_served(gate, 2, streamed=False)

    async def test_streams(self, gate: House, text_generation: ModuleType, arguments: dict[str, Any]) -> None:
        def ask() -> list[Any]:
            client = text_generation.Client(**arguments)
            return list(client.generate_stream("Tell me of the sea.", max_new_tokens=TOKENS))

        tokens = await blocking(ask)
        assert (len(tokens), tokens[-1].details.generated_tokens) == (TOKENS, TOKENS)
        assert_served(gate, 1, streamed=True)

    async def test_streams_of_chats(self, text_generation: ModuleType) -> None:
        """The client insists on a null that TGI left out later, and reads no `[DONE]`: so it is given such a stream."""

        async def talk(conversation: Conversation) -> None:
            await conversation.open_stream()
            for number in range(TOKENS):
                await conversation.piece(b"data: " + orjson.dumps(chunk(number)) + b"\n\n")
            await conversation.end_stream()

        async with TalkingTgi(talk, version="2.1.0") as engine:
            pool = f'replicas = [{{ name = "old", url = "{engine.url}" }}]\ntokenizer = "embedded"'
            async with house(replicas=(), pool=pool) as gate:

                def ask() -> list[Any]:
                    client = text_generation.Client(gate.data)
                    return list(client.chat(messages=MESSAGES, max_tokens=TOKENS, stream=True))

                chunks = await blocking(ask)
                assert [chunk.choices[0].delta.content for chunk in chunks] == [f" {n}" for n in range(TOKENS)]
                assert gate.decisions[-1]["termination"] == "--"

    async def test_asynchronous_client(
        self, gate: House, text_generation: ModuleType, arguments: dict[str, Any]
    ) -> None:
        client = text_generation.AsyncClient(**arguments)
        whole = await client.generate("Tell me of the sea.", max_new_tokens=TOKENS)
        assert whole.details.generated_tokens == TOKENS
        stream = client.generate_stream("Tell me of the sea.", max_new_tokens=TOKENS)
        assert len([token async for token in stream]) == TOKENS
        assert [line["streamed"] for line in gate.decisions] == [False, True]


def chunk(number: int) -> dict[str, Any]:
    """Return an event of a chat stream as text-generation's own types have it."""
    delta = {"role": "assistant", "content": f" {number}", "tool_calls": None}
    reason = "length" if number == TOKENS - 1 else None
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    named = {"id": "", "object": "chat.completion.chunk", "created": 0, "model": "m", "system_fingerprint": "2.1.0"}
    return {**named, "choices": [choice]}
