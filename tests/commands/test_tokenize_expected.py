"""`llmshed tokenize` against the counts that transformers gave and those of TGI's router, case by case."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from conftest import Cli
from fakes.reference_counts import TOKENIZERS, chat_of, expected_chats, reference, text_of
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.counter import ExactCounter
from llmshed.tokenizing.files import EngineName, TokenizerFiles
from llmshed.tokenizing.load import find

Find = Callable[[str], Path]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def built() -> dict[tuple[str, str], ExactCounter]:
    """The counters of this module by directory and engine, since a large tokenizer takes seconds to read and prove."""
    return {}


@pytest.fixture(autouse=True)
def each_counter_is_built_once(built: dict[tuple[str, str], ExactCounter], monkeypatch: pytest.MonkeyPatch) -> None:
    def build_once(files: TokenizerFiles, engine: EngineName, *, image_tokens: int | None) -> ExactCounter:
        key = (files.name, engine)
        if key not in built:
            built[key] = build_counter(files, engine, image_tokens=image_tokens)
        return built[key]

    monkeypatch.setattr("llmshed.tokenizing.load.find", cache(find))
    monkeypatch.setattr("llmshed.tokenizing.build.build_counter", build_once)


def test_every_chat_that_transformers_counted_is_counted_alike_for_vllm(
    cli: Cli, data_dir: Path, tokenizer_directory: Find, tmp_path: Path
) -> None:
    wrong = differing(cli, data_dir, tokenizer_directory, tmp_path, side="hf", engine="vllm")
    assert wrong == (90, [])


def test_every_chat_that_is_known_of_tgi_is_counted_alike_for_tgi(
    cli: Cli, data_dir: Path, tokenizer_directory: Find, tmp_path: Path
) -> None:
    wrong = differing(cli, data_dir, tokenizer_directory, tmp_path, side="tgi", engine="tgi")
    assert wrong == (72, [])


def differing(
    cli: Cli, data_dir: Path, directory_of: Find, tmp_path: Path, *, side: str, engine: str
) -> tuple[int, list[tuple[str, str, Any, Any]]]:
    """Return how many cases were tried, and those where count, length, template or refusal differ."""
    hashes = reference(data_dir)["tokenizers"]
    tried, wrong = 0, []
    for case, tokenizer, expected in expected_chats(data_dir, side):
        file = tmp_path / "chat.json"
        file.write_bytes(orjson.dumps(chat_of(case)))
        ran = cli("tokenize", "--chat", file, "--tokenizer", directory_of(tokenizer), "--engine", engine, "--json")
        found: Any = ran.json() if ran.exit_code == 0 else ran.exit_code
        if "error" in expected:
            same = ran.exit_code == 65 and ran.stdout == ""
            if expected["error"] == "TemplateError":
                same = same and expected["message"] in ran.stderr
        else:
            same = ran.exit_code == 0 and (
                (found["input_tokens"], found["characters"]) == (expected["prompt_tokens"], expected["rendered_chars"])
                and found["tokenizer_sha256"] == hashes[tokenizer]["tokenizer_json_sha256"]
                and found["chat_template_sha256"] == hashes[tokenizer]["chat_template_sha256"]
            )
        tried += 1
        if not same:
            wrong.append((case["id"], tokenizer, expected, found))
    return tried, wrong


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_plain_texts_are_counted_as_the_tokenizer_file_alone_counts_them(
    cli: Cli, data_dir: Path, tokenizer_directory: Find, tokenizer: str
) -> None:
    tried = 0
    for case in reference(data_dir)["text_cases"]:
        text, expected = text_of(case["text"]), case["expected"][tokenizer]
        options = ("--file", "-", "--tokenizer", tokenizer_directory(tokenizer), "--engine", "vllm", "--json")
        bare = cli("tokenize", *options, "--no-special-tokens", stdin=text).json()
        assert bare["input_tokens"] == expected["without_special"], case["id"]
        whole = cli("tokenize", *options, stdin=text).json()
        assert whole["input_tokens"] == expected["with_special"]["tokenizer_json"], case["id"]
        tried += 1
    assert tried == 15


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_plain_texts_for_tgi_carry_the_special_tokens_that_transformers_4_puts_around_them(
    cli: Cli, data_dir: Path, tokenizer_directory: Find, tokenizer: str
) -> None:
    for case in reference(data_dir)["text_cases"]:
        options = ("--file", "-", "--tokenizer", tokenizer_directory(tokenizer), "--engine", "tgi", "--json")
        count = cli("tokenize", *options, stdin=text_of(case["text"])).json()["input_tokens"]
        # This file pads and cuts to 128 tokens by itself, which TGI leaves switched on.
        expected = case["expected"][tokenizer]["with_special"]["transformers-4.57.6"]
        assert count == (128 if tokenizer == "minilm-l6-v2" else expected), case["id"]
