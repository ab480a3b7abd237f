"""The headers in which TGI tells what an answer took; each row's id is a route."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from fakes.simulated import Answer, Site, simulated
from fakes.tgi_calls import HI, chat, complete, native, stream, vertex


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with simulated() as running:
        yield running


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
