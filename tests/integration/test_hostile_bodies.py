"""Hostile bodies at the open door: the JSON that parsers read differently, texts that break text handling, bombs."""

import gzip
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest
from tokenizers import Tokenizer

from fakes.engine import Conversation
from fakes.front import Got
from fakes.house import JSON, House, house
from fakes.talking_tgi import TalkingTgi
from llmshed.gateway.door.body import parse_body
from llmshed.tokenizing.encode import ReferenceCounter
from llmshed.tokenizing.load import embedded

CHAT = "/v1/chat/completions"
ROOM = "gross_ceiling_tokens = 1_000_000\nmax_concurrent_sequences = 1000"
ANSWER = {
    "id": "",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "system_fingerprint": "3.3.5",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "a"}, "logprobs": None, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


@asynccontextmanager
async def listening(tokenizer: str = "embedded") -> AsyncIterator[tuple[House, TalkingTgi]]:
    """A gateway before an engine that keeps what it is sent and answers every chat alike."""

    async def talk(conversation: Conversation) -> None:
        await conversation.whole(orjson.dumps(ANSWER))

    async with TalkingTgi(talk, max_input_tokens=100_000, max_total_tokens=110_000) as engine:
        pool = f'replicas = [{{ name = "r1", url = "{engine.url}" }}]\ntokenizer = "{tokenizer}"\n{ROOM}'
        async with house(replicas=(), pool=pool) as gate:
            yield gate, engine


def corpus(data_dir: Path, folder: str, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    files = sorted((data_dir / "corpora" / "json-parsing" / folder).glob(f"{prefix}*.json"))
    return ((file.name, file.read_bytes()) for file in files)


def naughty_strings(data_dir: Path) -> list[str]:
    strings: list[str] = json.loads((data_dir / "corpora" / "naughty-strings" / "blns.json").read_bytes())
    return strings


def holding(raw: bytes) -> bytes:
    """A chat request with a text of the corpus in a field that goes on to the engine whatever it holds."""
    return b'{"messages":[{"role":"user","content":"a"}],"response_format":{"value":' + raw + b"}}"


async def post(gate: House, path: str, raw: bytes) -> Got:
    return await gate.ask("POST", path, data=raw, headers=JSON)


@pytest.mark.slow
async def test_json_of_every_kind_has_one_value_at_the_gateway_and_at_the_engine_or_a_reason(data_dir: Path) -> None:
    async with listening() as (gate, engine):
        refused: dict[str, list[str]] = {}
        for name, raw in [*corpus(data_dir, "test_parsing", "y_"), *corpus(data_dir, "test_transform")]:
            asked = engine.asked_for(CHAT)
            got = await post(gate, CHAT, holding(raw))
            if got.status == 200:
                assert one_value(engine.asked[-1].body, raw), name
                assert engine.asked_for(CHAT) == asked + 1
            else:
                assert (got.status, engine.asked_for(CHAT)) == (400, asked), name
                refused.setdefault(got.reason or "", []).append(name)
        assert {reason: len(names) for reason, names in refused.items()} == {"duplicate_key": 5, "malformed": 6}
        assert {"y_object_duplicated_key.json", "object_same_key_same_value.json"} < set(refused["duplicate_key"])
        assert all(name.startswith("string_") for name in refused["malformed"])  # halves of surrogate pairs


def one_value(received: bytes, raw: bytes) -> bool:
    """Say whether the engine reads the value that the gateway read, by a parser that keeps every digit it is given."""
    here = parse_body(b'{"value":' + raw + b"}")["value"]
    there = json.loads(received, parse_float=Decimal)["response_format"]["value"]
    return bool(plain(there) == here and type(plain(there)) is type(here))


def plain(value: Any) -> Any:
    """Take decimals for what a reader of doubles takes them for."""
    match value:
        case Decimal():
            return float(value)
        case list():
            return [plain(item) for item in value]
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case _:
            return value


@pytest.mark.slow
async def test_no_json_is_answered_by_a_fault_of_ours_and_none_that_is_none_reaches_the_engine(data_dir: Path) -> None:
    async with listening() as (gate, engine):
        for prefix, bare in (("n_", {400}), ("y_", {400}), ("i_", {400})):
            for name, raw in corpus(data_dir, "test_parsing", prefix):
                assert (await post(gate, CHAT, raw)).status in bare, name
        assert engine.asked_for(CHAT) == 0
        for name, raw in corpus(data_dir, "test_parsing", "i_"):
            got = await post(gate, CHAT, holding(raw))
            assert got.status in {200, 400}, name
            assert got.status == 400 or one_value(engine.asked[-1].body, raw), name


@pytest.mark.slow
async def test_naughty_strings_have_the_count_of_the_tokenizer_itself(data_dir: Path) -> None:
    strings = naughty_strings(data_dir)
    oracle = Tokenizer.from_str(embedded().tokenizer_json)
    async with house(pool=ROOM) as gate:

        async def told(text: str) -> tuple[int, str | None]:
            got = await gate.post("/generate", {"inputs": text, "parameters": {"max_new_tokens": 1}})
            return got.status, got.headers.get("x-llmshed-input-tokens")

        async def listed(text: str) -> tuple[int, str | None]:
            got = await gate.post("/tokenize", {"inputs": text})
            return got.status, str(len(got.json())) if got.status == 200 else None

        found = [await listed(text) for text in strings]
        sample = [await told(text) for text in strings[::12]]
    right = [(200, str(len(oracle.encode(text).ids))) if text else (400, None) for text in strings]
    assert (len(strings), found, sample) == (515, right, right[::12])


async def test_naughty_strings_reach_the_engine_to_the_last_character(data_dir: Path) -> None:
    marks = [
        "a\x00b",
        "\ufeffa",
        "a\ufeff",
        "\u202eabc\u202c",
        "a\u2028b\u2029c",
        "\u200f\u2066x\u2069",
        "\x7f\x85\x1b[",
    ]
    messages = [{"role": "user", "content": text} for text in [*naughty_strings(data_dir), *marks]]
    async with listening() as (gate, engine):
        # Half of them as escapes, the other half as UTF-8.
        for ascii_only in (True, False):
            got = await post(gate, CHAT, json.dumps({"messages": messages}, ensure_ascii=ascii_only).encode())
            assert got.status == 200
            assert json.loads(engine.asked[-1].body)["messages"] == messages


CODINGS = ("gzip", "x-gzip", "deflate", "gzip, gzip", "br", "zstd", "compress", "foo", "identity, gzip", "GZIP")


async def test_no_body_is_inflated() -> None:
    zeros = bytes(20_000_000)
    bombs = {"deflate": zlib.compress(zeros), "gzip": gzip.compress(zeros)}
    bombs["gzip, gzip"] = gzip.compress(bombs["gzip"])
    del zeros
    async with house() as gate:
        tracemalloc.start()
        try:
            for coding in CODINGS:
                bomb = bombs.get(coding, bombs["gzip"])
                got = await gate.ask("POST", "/generate", data=bomb, headers={**JSON, "Content-Encoding": coding})
                assert (got.status, got.reason) == (415, "content_encoding"), coding
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak_bytes < 5_000_000


BROUGHT: tuple[dict[str, Any], ...] = (
    {"chat_template": "{{ (10**(10**7))%7 }}"},
    {"chat_template": ""},
    {"chat_template": {"default": "x"}},
    {"chat_template_kwargs": {"chat_template": "{{ 1 }}"}},
    {"chat_template_kwargs": {"enable_thinking": False}},
    {"chat_template_kwargs": {}},
)


async def test_a_request_brings_no_template() -> None:
    async with house() as gate:
        for path in (CHAT, "/chat_tokenize"):
            for more in BROUGHT:
                got = await gate.post(path, {"messages": [{"role": "user", "content": "a"}], **more})
                assert (got.status, got.reason) == (400, "unsupported_field"), more


@pytest.mark.slow
async def test_a_template_whose_loops_run_into_each_other_ends_on_a_conversation_made_for_it(tmp_path: Path) -> None:
    loops = "{% for a in messages %}{% for b in messages %}{{ b.content }}{% endfor %}{% endfor %}"
    (tmp_path / "tokenizer.json").write_text(embedded().tokenizer_json)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": loops}))
    message = {"role": "user", "content": "a"}
    async with listening(str(tmp_path)) as (gate, engine):
        assert (await gate.post(CHAT, {"messages": [message] * 20})).status == 200
        for messages in (250, 3_000):  # of which the first are rendered on the loop itself
            got = await gate.post(CHAT, {"messages": [message] * messages})
            assert (got.status, got.reason) == (400, "malformed")
            assert "too many steps" in got.json()["error"]["message"]
        assert engine.asked_for(CHAT) == 1


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The length of each text that the tokenizer is given from now on."""
    found: list[int] = []
    counts = ReferenceCounter.counts

    def watched(self: ReferenceCounter, texts: list[str], *, add_special_tokens: bool) -> list[int]:
        found.extend(map(len, texts))
        return counts(self, texts, add_special_tokens=add_special_tokens)

    monkeypatch.setattr(ReferenceCounter, "counts", watched)
    return found


async def test_a_prompt_far_beyond_the_model_is_counted_no_further_than_shows_it(counted: list[int]) -> None:
    text = "x y " * 20_000
    async with house("[counting]\ncache_bytes = 0\n") as gate:
        for path, body in (
            ("/generate", {"inputs": text}),
            (CHAT, {"messages": [{"role": "user", "content": text}]}),
        ):
            counted.clear()
            got = await gate.post(path, body)
            assert (got.status, got.reason) == (413, "context_limit")
            assert "At least" in got.body.decode()
            assert "x-llmshed-input-tokens" not in got.headers
            assert 30_000 < sum(counted) < 70_000  # two slices at most


@pytest.mark.slow
async def test_a_list_of_tokens_that_is_far_too_long_is_counted_no_further(counted: list[int]) -> None:
    async with house("[counting]\ncache_bytes = 0\n") as gate:
        counted.clear()
        got = await gate.post("/tokenize", {"inputs": "x y " * 200_000})
    assert (got.status, got.reason) == (413, "context_limit")
    assert "has at least 262,1" in got.body.decode().replace("262,2", "262,1")
    assert sum(counted) < 600_000
