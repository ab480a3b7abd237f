"""The adapter of llama.cpp against a real one: what it is, what it counts, what it streams, whom it serves."""

import asyncio
from collections.abc import Iterator

import aiohttp
import pytest
from tokenizers import Tokenizer

from fakes.llama import RealEngine, llama
from llmshed.engines.base import Activity, EngineRequest, StreamReader, UpstreamFault
from llmshed.engines.registry import readable_engine

ENGINE = readable_engine("llamacpp")
SLOTS, CONTEXT_TOKENS = 4, 1024
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealEngine]:
    with llama(tmp_path_factory.mktemp("llama"), slots=SLOTS, context_tokens=CONTEXT_TOKENS) as running:
        yield running


async def page(session: aiohttp.ClientSession, url: str) -> bytes:
    async with session.get(url) as answer:
        assert answer.status == 200
        return await answer.read()


async def streamed(session: aiohttp.ClientSession, url: str, request: EngineRequest) -> StreamReader:
    reader = ENGINE.text_reader()
    async with session.post(url + request.path, data=request.body) as answer:
        assert answer.status == 200
        async for piece in answer.content.iter_any():
            reader.feed(piece)
    reader.end()
    return reader


async def test_it_tells_its_slots_and_counts_as_its_tokenizer(server: RealEngine) -> None:
    own = Tokenizer.from_file(str(server.folder / "tokenizer.json"))
    texts = ("hello", "A longer text, with numbers 1,024 and a\nnew line.", "naïve 統一 🙂", "<|im_start|>user")
    async with aiohttp.ClientSession() as session:
        told = {path: await page(session, server.url + path) for path in ENGINE.description_paths}
        info = ENGINE.read_description(told)
        counts = []
        for text in texts:
            request = ENGINE.count_request(text, model=info.model_id)
            async with session.post(server.url + request.path, data=request.body) as answer:
                counts.append(ENGINE.read_text_count(await answer.read()))
    assert info.model_id == "tiny"
    assert (info.max_running_sequences, info.max_total_tokens) == (SLOTS, CONTEXT_TOKENS)
    assert info.max_batch_total_tokens == SLOTS * CONTEXT_TOKENS
    assert counts == [len(own.encode(text).ids) for text in texts]


async def test_streams_run_to_their_ceiling_in_slots_and_the_rest_wait(server: RealEngine) -> None:
    ceiling, asks = 600, SLOTS + 2
    async with aiohttp.ClientSession() as session:
        before = ENGINE.read_activity(await page(session, f"{server.url}/metrics"))
        texts = (f"{number} times the same text" for number in range(asks))
        requests = [ENGINE.text_request(text, ceiling, runs_to_ceiling=True, model="tiny") for text in texts]
        streams = [asyncio.ensure_future(streamed(session, server.url, request)) for request in requests]
        busiest, body = Activity(0, 0), b""
        while busiest.running_requests != SLOTS or busiest.queued_requests != asks - SLOTS:
            assert not all(stream.done() for stream in streams), f"it was never full: {busiest}"
            body = await page(session, f"{server.url}/metrics")
            busiest = ENGINE.read_activity(body)
        assert ENGINE.read_metrics(body, None, 1.0).queued_requests == asks - SLOTS
        facts = [reader.facts for reader in await asyncio.gather(*streams)]
        after = ENGINE.read_activity(await page(session, f"{server.url}/metrics"))
    assert [(fact.output_tokens, fact.complete, fact.finish_reason) for fact in facts] == [
        (ceiling, True, "limit")
    ] * asks
    assert (after.running_requests, after.queued_requests) == (0, 0)
    own = Tokenizer.from_file(str(server.folder / "tokenizer.json"))
    sent = sum(len(own.encode(f"{number} times the same text").ids) for number in range(asks))
    assert after.prompt_tokens_total is not None
    assert before.prompt_tokens_total is not None
    assert after.prompt_tokens_total - before.prompt_tokens_total == sent


async def test_a_prompt_beyond_its_context_is_refused_before_the_stream(server: RealEngine) -> None:
    request = ENGINE.text_request("again " * 2 * CONTEXT_TOKENS, 5, runs_to_ceiling=False, model="tiny")
    async with aiohttp.ClientSession() as session, session.post(server.url + request.path, data=request.body) as answer:
        failure = ENGINE.read_failure(answer.status, await answer.read())
    assert (failure.fault, failure.status, failure.error_type) == (
        UpstreamFault.CLIENT,
        400,
        "exceed_context_size_error",
    )
