"""Megabytes in counting, and bodies made to be slow to read, stop neither a running stream nor `/livez`."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
import pytest
from tokenizers import Tokenizer

from fakes.programs import Served, serve, simulate
from fakes.texts import prose
from fakes.watching import Pauses, watching
from llmshed.tokenizing.load import find

Find = Callable[[str], Path]

MEGABYTE = 1_000_000
BOUND_SECONDS = 1.0
"""Ten times what is promised: two cores may be shared with anything; a count on the loop would take seconds."""

QUICK_STEPS = ("--step-seconds", "0.01", "--prefill-tokens-per-second", "10000000", "--output-mean", "ceiling")
"""TGI prefills a sequence anew each 1,024 tokens; at a usual rate that alone would be a gap of 130 ms."""
JSON = {"Content-Type": "application/json"}


@asynccontextmanager
async def streaming(
    place: Path, tokenizer: str, room: int
) -> AsyncIterator[tuple[Served, aiohttp.ClientSession, Pauses]]:
    """Serve a replica of so many tokens beside one whose stream is watched, each in a process of its own."""
    size = ("--max-total-tokens", str(room), "--kv-tokens", str(room))
    big, steady = (
        simulate(*QUICK_STEPS, *size, "--tokenizer", tokenizer),
        simulate(*QUICK_STEPS, "--model-id", "steady"),
    )
    async with big as big_url, steady as steady_url:
        toml = f"""
            [server]
            max_body_bytes = 8_000_000
            [upstream]
            probe_timeout_seconds = 60
            [[pools]]
            name = "big"
            tokenizer = "{tokenizer}"
            gross_ceiling_tokens = {room}
            replicas = [{{ name = "big", url = "{big_url}" }}]
            [[pools]]
            name = "steady"
            aliases = ["calm"]
            tokenizer = "embedded"
            replicas = [{{ name = "steady", url = "{steady_url}" }}]
        """
        async with serve(place, toml) as served, aiohttp.ClientSession() as session:
            await served.program.until(lambda: len(served.program.logged("replica_up")) == 2)
            body = {"model": "steady", "prompt": "Hello", "max_tokens": 7000, "stream": True}
            async with session.post(f"{served.data}/v1/completions", json=body) as stream:
                assert stream.status == 200
                async with watching(served, stream) as pauses:
                    yield served, session, pauses


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "prompts"),
    [
        pytest.param("embedded", 3, marks=pytest.mark.slow),
        pytest.param("embedded", 8, marks=pytest.mark.soak),
        pytest.param("qwen3", 8, marks=pytest.mark.soak),
    ],
)
async def test_prompts_of_a_megabyte_are_counted_beside_a_stream(
    tmp_path: Path, request: pytest.FixtureRequest, name: str, prompts: int
) -> None:
    """More of them than threads that count: some are in counting all the while, others wait."""
    if name == "embedded":
        tokenizer, oracle = name, Tokenizer.from_str(find(name).tokenizer_json)
    else:
        directory = request.getfixturevalue("tokenizer_directory")(name)
        tokenizer, oracle = str(directory), Tokenizer.from_file(str(directory / "tokenizer.json"))
    texts = [prose(MEGABYTE, seed) for seed in range(prompts)]
    # Each text as a whole, by the library alone: nothing is cut, cached or bounded.
    right = [len(encoding.ids) for encoding in oracle.encode_batch_fast(texts)]
    async with streaming(tmp_path, tokenizer, 20_000_000) as (served, session, pauses):

        async def counted(text: str) -> int:
            body = {"inputs": text, "parameters": {"max_new_tokens": 1}}
            async with session.post(
                f"{served.data}/generate", data=io.BytesIO(orjson.dumps(body)), headers=JSON
            ) as answer:
                assert answer.status == 200, await answer.text()
                return int(answer.headers["x-llmshed-input-tokens"])

        assert await asyncio.gather(*map(counted, texts)) == right
    print(f"\n{name}: {pauses}")  # noqa: T201 - figures for whoever runs it with -s
    assert max(pauses.stream) < BOUND_SECONDS
    assert max(pauses.livez) < BOUND_SECONDS


def repeated(head: bytes, unit: bytes, tail: bytes, size: int = 2_000_000) -> bytes:
    """Return a body of about `size` bytes."""
    return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


def slow_to_read() -> dict[str, bytes]:
    """Return bodies of up to 2 MB, TGI's own bound, that cost a reader most for their bytes."""
    keys = b",".join(b'"k%d":1' % number for number in range(99_000))
    ids = b",".join(b"%d" % number for number in range(10_000, 109_000))
    message = b'{"role":"user","content":"a"}'
    tool = b'{"type":"function","function":{"name":"f","parameters":{}}}'
    return {
        "escaped quotes": repeated(b'{"inputs":"', b',\\"', b'"}'),
        "escaped backslashes": repeated(b'{"inputs":"', b"\\\\", b'"}'),
        "escaped characters": repeated(b'{"inputs":"', b"\\u4e2d", b'"}'),
        "wide characters": repeated(b'{"inputs":"', "\U0001f600".encode(), b'"}'),
        "many keys, one twice": b"{" + keys + b',"k1":1}',
        "many keys": b"{" + keys + b"}",
        "many objects, one key twice": repeated(b'{"a":[', b'{"b":1},', b'{}],"a":1}', 390_000),
        "many empty lists": repeated(b'{"inputs":[', b"[],", b"[]]}"),
        "many numbers": b'{"prompt":[' + ids + b'],"max_tokens":1}',
        "many prompts": repeated(b'{"max_tokens":1,"prompt":[', b'"a b c d e f g h i",', b'""]}'),
        "many messages": repeated(b'{"max_tokens":1,"messages":[', message + b",", message + b"]}", 980_000),
        "many parts": repeated(
            b'{"max_tokens":1,"messages":[{"role":"user","content":[',
            b'{"type":"text","text":"a"},',
            b'""]}]}',
            890_000,
        ),
        "many tools": repeated(
            b'{"max_tokens":1,"messages":[' + message + b'],"tools":[', tool + b",", tool + b"]}", 900_000
        ),
        "many images": repeated(
            b'{"parameters":{"max_new_tokens":1},"inputs":"', b"![](data:image/png;base64,a)", b'"}'
        ),
        "broken at its end": repeated(b'{"inputs":"', b"word ", b'"'),
    }


DIALECTS = ("/generate", "/v1/completions", "/v1/chat/completions")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "paths",
    [
        pytest.param(DIALECTS, id="dialects", marks=pytest.mark.slow),
        pytest.param((*DIALECTS, "/tokenize", "/chat_tokenize"), id="all", marks=pytest.mark.soak),
    ],
)
async def test_bodies_that_are_slow_to_read_hold_nobody_up(tmp_path: Path, paths: tuple[str, ...]) -> None:
    bodies = slow_to_read()
    async with streaming(tmp_path, "embedded", 131_072) as (served, session, pauses):
        for name, body in bodies.items():
            before = len(pauses.stream), len(pauses.livez)
            for path in paths:
                async with session.post(served.data + path, data=io.BytesIO(body), headers=JSON) as answer:
                    assert answer.status < 500, (name, path, await answer.text())
            await asyncio.sleep(0.05)
            stream, livez = max(pauses.stream[before[0] :]), max(pauses.livez[before[1] :])
            print(f"\n{name}: stream gap {1000 * stream:.1f} ms, livez {1000 * livez:.1f} ms", end="")  # noqa: T201 - as above
            assert max(stream, livez) < BOUND_SECONDS, name
    print(f"\n{pauses}")  # noqa: T201 - as above
