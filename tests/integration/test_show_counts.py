"""Counts through the daemon: every chat whose count by TGI is known is told with that count, or refused as TGI does."""

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fakes.programs import serve, simulate
from fakes.reference_counts import chat_of, expected_chats, reference

Find = Callable[[str], Path]

LONGEST = "131072"
REPLICA = (
    *("--max-total-tokens", LONGEST, "--kv-tokens", LONGEST, "--output-mean", "ceiling"),
    *("--step-seconds", "0.001", "--prefill-tokens-per-second", "1000000"),
)
"""Long enough for the longest case, of 60,000 tokens."""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("tokenizer", ["qwen3", "deepseek-v3", "mistral-7b-instruct-v0.3"])
async def test_every_known_count_is_told_to_the_client(
    data_dir: Path, tokenizer_directory: Find, tmp_path: Path, tokenizer: str
) -> None:
    directory = tokenizer_directory(tokenizer)
    cases = [(case, case["expected"][tokenizer]) for case in reference(data_dir)["cases"]]
    known, wrong = 0, []
    async with simulate(*REPLICA, "--tokenizer", directory) as url:
        toml = f'[[pools]]\ntokenizer = "{directory}"\nreplicas = [{{ name = "r1", url = "{url}" }}]\n'
        async with serve(tmp_path, toml) as served, aiohttp.ClientSession() as session:
            (up,) = served.program.logged("replica_up")
            assert up["probes_compared"] > 0
            for case, sides in cases:
                found = await told(session, served.data, chat_of(case))
                known += sides["tgi"] is not None
                if not is_right(found, sides):
                    wrong.append((case["id"], sides, found))
    assert (known, wrong) == (24, [])


def is_right(found: tuple[int, int | None], sides: dict[str, Any]) -> bool:
    """Compare with TGI's side; where that is unknown, a chat is at least served or refused by a 4xx, never by a 5xx."""
    status, tokens = found
    match sides["tgi"], sides["hf"]:
        case {"error": _}, _:
            return status == HTTPStatus.BAD_REQUEST
        case {"prompt_tokens": right}, _:
            return (status, tokens) == (HTTPStatus.OK, right)
        case None, _:
            return status in {HTTPStatus.OK, HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
        case _:
            return False


async def told(session: aiohttp.ClientSession, url: str, chat: dict[str, Any]) -> tuple[int, int | None]:
    """Return the status of an answer and the count that header and, where there is one, the replica's usage tell."""
    async with session.post(f"{url}/v1/chat/completions", json={**chat, "max_tokens": 1}) as answer:
        tokens = answer.headers.get("x-llmshed-input-tokens")
        if answer.status == HTTPStatus.OK:
            assert (await answer.json())["usage"]["prompt_tokens"] == int(tokens or -1)
        return answer.status, None if tokens is None else int(tokens)


def test_all_known_counts_are_of_these_three_tokenizers(data_dir: Path) -> None:
    told = {name for _, name, _ in expected_chats(data_dir, "tgi")}
    assert told == {"qwen3", "deepseek-v3", "mistral-7b-instruct-v0.3"}
    assert len(list(expected_chats(data_dir, "tgi"))) == 72
    assert len(reference(data_dir)["cases"]) == 30
