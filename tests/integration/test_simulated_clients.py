"""Real clients against the simulated replica, whole and streamed, on every route that they use."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import pytest
import pytest_asyncio

from fakes.simulated import Site, embedded_vocabulary, simulated

pytestmark = pytest.mark.usefixtures("foreign_sockets")

openai = pytest.importorskip("openai", reason="the clients extra is not installed")
huggingface_hub = pytest.importorskip("huggingface_hub", reason="the clients extra is not installed")
text_generation = pytest.importorskip("text_generation", reason="the clients extra is not installed")

MESSAGES: list[Any] = [{"role": "user", "content": "Why was this refused?"}]
TOKENS = 6
T = TypeVar("T")


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with simulated() as running:
        yield running


async def aside(work: Callable[[], T]) -> T:
    """Run a client that blocks beside the replica's loop."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


async def test_openai_chats_whole_and_streamed(site: Site) -> None:
    async with openai.AsyncOpenAI(base_url=f"{site.url}/v1", api_key="none") as client:
        whole = await client.chat.completions.create(model="tgi", messages=MESSAGES, max_tokens=TOKENS)
        stream = await client.chat.completions.create(
            model="tgi", messages=MESSAGES, max_tokens=TOKENS, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    assert whole.usage.completion_tokens == TOKENS
    assert whole.choices[0].finish_reason == "length"
    text = "".join(chunk.choices[0].delta.content for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage == whole.usage


async def test_openai_completes_whole_and_streamed(site: Site) -> None:
    async with openai.AsyncOpenAI(base_url=f"{site.url}/v1", api_key="none") as client:
        whole = await client.completions.create(model="tgi", prompt="Why?", max_tokens=TOKENS)
        stream = await client.completions.create(model="tgi", prompt="Why?", max_tokens=TOKENS, stream=True)
        text = "".join([chunk.choices[0].text async for chunk in stream])
    assert whole.usage.prompt_tokens == embedded_vocabulary().count("Why?", add_special_tokens=True)
    assert text == whole.choices[0].text


async def test_openai_sees_a_429_and_an_error_inside_a_stream(site: Site) -> None:
    await site.post("/_simulate/faults", {"overloaded": True})
    async with openai.AsyncOpenAI(base_url=f"{site.url}/v1", api_key="none", max_retries=0) as client:
        with pytest.raises(openai.RateLimitError):
            await client.chat.completions.create(model="tgi", messages=MESSAGES, max_tokens=TOKENS)
        stream = await client.chat.completions.create(model="tgi", messages=MESSAGES, max_tokens=TOKENS, stream=True)
        with pytest.raises(openai.APIError, match="Model is overloaded"):
            await anext(aiter(stream))


async def test_openai_calls_a_tool(site: Site) -> None:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools: list[Any] = [{"type": "function", "function": {"name": "weather", "parameters": parameters}}]
    async with openai.AsyncOpenAI(base_url=f"{site.url}/v1", api_key="none") as client:
        whole = await client.chat.completions.create(
            model="tgi", messages=MESSAGES, max_tokens=200, tools=tools, tool_choice="required"
        )
    (call,) = whole.choices[0].message.tool_calls
    assert (call.function.name, call.function.arguments) == ("weather", '{"city":"text"}')


async def test_huggingface_hub_generates_and_chats(site: Site) -> None:
    client = huggingface_hub.InferenceClient(base_url=site.url)
    native = huggingface_hub.InferenceClient(model=site.url)

    def work() -> tuple[Any, ...]:
        # The root route, which this client uses, repeats the prompt unless told not to.
        text = native.text_generation("Why?", max_new_tokens=TOKENS)
        details = native.text_generation("Why?", max_new_tokens=TOKENS, details=True, return_full_text=False)
        pieces = list(native.text_generation("Why?", max_new_tokens=TOKENS, stream=True))
        chat = client.chat_completion(MESSAGES, max_tokens=TOKENS)
        chunks = list(client.chat_completion(MESSAGES, max_tokens=TOKENS, stream=True))
        return text, details, pieces, chat, chunks

    text, details, pieces, chat, chunks = await aside(work)
    assert text == "Why?" + details.generated_text
    assert details.generated_text == "".join(pieces)
    assert details.details.generated_tokens == TOKENS
    assert "".join(chunk.choices[0].delta.content for chunk in chunks) == chat.choices[0].message.content
    assert chat.usage.completion_tokens == TOKENS


async def test_huggingface_hub_knows_the_error_kinds(site: Site) -> None:
    errors = huggingface_hub.errors
    client = huggingface_hub.InferenceClient(model=site.url)

    def failing(**parameters: Any) -> None:
        list(client.text_generation("Why?", stream=True, **parameters))

    with pytest.raises(errors.ValidationError):
        await aside(lambda: failing(max_new_tokens=0))
    await site.post("/_simulate/faults", {"overloaded": True})
    with pytest.raises(errors.OverloadedError):
        await aside(lambda: failing(max_new_tokens=TOKENS))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the client's own use of pydantic's old names
async def test_text_generation_generates_and_streams(site: Site) -> None:
    client = text_generation.Client(site.url)

    def work() -> tuple[Any, list[Any]]:
        return client.generate("Why?", max_new_tokens=TOKENS), list(
            client.generate_stream("Why?", max_new_tokens=TOKENS)
        )

    whole, events = await aside(work)
    assert whole.details.generated_tokens == TOKENS
    assert "".join(event.token.text for event in events) == whole.generated_text
    assert events[-1].generated_text == whole.generated_text
    await site.post("/_simulate/faults", {"overloaded": True})
    with pytest.raises(text_generation.errors.OverloadedError):
        await aside(lambda: client.generate("Why?", max_new_tokens=TOKENS))
