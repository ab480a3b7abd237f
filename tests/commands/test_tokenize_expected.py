"""`llmshed tokenize` against the counts that transformers gave and those of TGI's router, case by case."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tokenizers import Tokenizer

from conftest import Cli
from fakes.reference_counts import TOKENIZERS, chat_of, expected_chats, reference, text_of
from llmshed.tokenizing.adapt import engine_tokenizer
from llmshed.tokenizing.files import EngineName, TokenizerFiles

Find = Callable[[str], Path]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def loaded() -> dict[tuple[str, str], Tokenizer]:
    """The tokenizers of this module by directory and engine, since a large one takes seconds to build."""
    return {}


@pytest.fixture(autouse=True)
def each_tokenizer_is_built_once(loaded: dict[tuple[str, str], Tokenizer], monkeypatch: pytest.MonkeyPatch) -> None:
    def build_once(files: TokenizerFiles, engine: EngineName) -> Tokenizer:
        key = (files.name, engine)
        if key not in loaded:
            loaded[key] = engine_tokenizer(files, engine)
        return loaded[key]

    monkeypatch.setattr("llmshed.tokenizing.build.engine_tokenizer", build_once)


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
    cli: Cli, data_dir: Path, find: Find, tmp_path: Path, *, side: str, engine: str
) -> tuple[int, list[tuple[str, str, Any, Any]]]:
    """Return how many cases were tried, and those where count, length, template or refusal differ."""
    hashes = reference(data_dir)["tokenizers"]
    tried, wrong = 0, []
    for case, tokenizer, expected in expected_chats(data_dir, side):
        file = tmp_path / "chat.json"
        file.write_bytes(orjson.dumps(chat_of(case)))
        ran = cli("tokenize", "--chat", file, "--tokenizer", find(tokenizer), "--engine", engine, "--json")
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
