"""The gateway's count is the engine's, whatever a request holds; one token of difference keeps a replica out."""

import asyncio
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from tokenizers import Tokenizer

from fakes.house import QUICK, House, house, until
from llmshed.tokenizing.load import find
from llmshed.tokenizing.train_embedded import config

REQUESTS = 500
AT_ONCE = 50
WORDS = ("Hello", "there", " 12345", "\n\n", "naïve", "中文", "\U0001f600", "<|im_start|>", "  ", "a.b", "x" * 50)
TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "of a town", "parameters": {"type": "object", "properties": {}}},
}
ROOM = "gross_ceiling_tokens = 100_000\nmax_concurrent_sequences = 128\n"

Ask = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def with_bos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded tokenizer with a token that begins every text, as Llama's has."""
    place = tmp_path_factory.mktemp("with-bos")
    Tokenizer.from_str(find("embedded").tokenizer_json).save(str(place / "tokenizer.json"))
    begins = {"tokenizer_class": "LlamaTokenizerFast", "bos_token": "<|endoftext|>", "add_bos_token": True}
    (place / "tokenizer_config.json").write_bytes(orjson.dumps(config() | begins))
    return place


def asks(seed: int) -> Iterator[Ask]:
    """Yield requests of every kind that is counted, with texts that tokenizers read differently.

    Where the model may choose to call no tool, TGI runs the request again without them and tells that run alone.
    """
    draw = random.Random(seed)  # noqa: S311 - a seed, so that a failure can be repeated

    def text() -> str:
        return "".join(draw.choices(WORDS, k=draw.randint(1, 30)))

    def turns(number: int) -> list[dict[str, str]]:
        return [{"role": ("user", "assistant")[turn % 2], "content": text()} for turn in range(number)]

    system = {"role": "system", "content": "Be brief."}
    chat = "/v1/chat/completions"
    kinds: tuple[Callable[[], Ask], ...] = (
        lambda: ("/generate", {"inputs": text(), "parameters": {"max_new_tokens": 1}}),
        lambda: ("/v1/completions", {"prompt": text(), "max_tokens": 1}),
        lambda: ("/v1/completions", {"prompt": [text(), text()], "max_tokens": 1}),
        lambda: (chat, {"messages": turns(1), "max_tokens": 1}),
        lambda: (chat, {"messages": [system, *turns(1)], "max_tokens": 1}),
        lambda: (chat, {"messages": turns(5), "max_tokens": 1}),
        lambda: (chat, {"messages": turns(1), "tools": [TOOL], "tool_choice": "required", "max_tokens": 100}),
        lambda: (
            chat,
            {
                "messages": turns(1),
                "response_format": {"type": "json_object", "value": {"type": "object", "properties": {}}},
                "max_tokens": 1,
            },
        ),
    )
    for kind in itertools.cycle(kinds):
        yield kind()


async def differing(gate: House, requests: list[Ask]) -> list[tuple[Ask, str, str]]:
    """Return the requests of which engine and gateway tell another number of input tokens."""
    wrong = []
    for first in range(0, len(requests), AT_ONCE):
        some = requests[first : first + AT_ONCE]
        for ask, got in zip(some, await asyncio.gather(*(gate.post(*ask) for ask in some)), strict=True):
            assert got.status == 200, (ask, got.body)
            theirs, ours = got.headers["x-prompt-tokens"], got.headers["x-llmshed-input-tokens"]
            if theirs != ours:
                wrong.append((ask, theirs, ours))
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("bos", [False, True], ids=["without", "with"])
async def test_five_hundred_requests_of_every_kind_are_counted_as_the_engine_counts_them(
    *, bos: bool, with_bos: Path
) -> None:
    tokenizer = str(with_bos) if bos else "embedded"
    requests = list(itertools.islice(asks(17), REQUESTS))
    pool = f'tokenizer = "{tokenizer}"\n{ROOM}'
    async with house(replicas=(replace(QUICK, tokenizer=tokenizer),), pool=pool) as gate:
        assert await differing(gate, requests) == []
        assert (await mismatches(gate)) == 0


async def mismatches(gate: House) -> float:
    scrape = (await gate.ask("GET", "/metrics", admin=True)).body.decode().splitlines()
    told = [line for line in scrape if line.startswith("llmshed_count_mismatch_total{")]
    return sum(float(line.rpartition(" ")[2]) for line in told)


@pytest.mark.parametrize("ours_begins", [False, True], ids=["none", "twice"])
async def test_a_token_that_only_one_side_adds_keeps_the_replica_out(*, ours_begins: bool, with_bos: Path) -> None:
    ours, theirs = ("embedded", str(with_bos))[:: -1 if ours_begins else 1]
    pool = f'tokenizer = "{ours}"\n'
    async with house(replicas=(replace(QUICK, tokenizer=theirs),), pool=pool, ready=False) as gate:
        await until(lambda: gate.daemon.gateway.fleet.troubles)
        assert "counts otherwise than its engine" in gate.daemon.gateway.fleet.troubles["r1"]
        got = await gate.post("/generate", {"inputs": "Hello", "parameters": {"max_new_tokens": 1}})
        assert (got.status, got.reason) == (503, "tokenizer_unavailable")
        assert await mismatches(gate) > 0
