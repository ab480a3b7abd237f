from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from llmshed.errors import TokenizerError
from llmshed.tokenizing.adapt import engine_tokenizer
from llmshed.tokenizing.files import TokenizerFiles, read_files
from llmshed.tokenizing.load import embedded, from_directory


def files_with(config: Mapping[str, Any]) -> TokenizerFiles:
    own = embedded().tokenizer_json.encode()
    return read_files("m", "directory", {"tokenizer.json": own, "tokenizer_config.json": orjson.dumps(config)})


def added(files: TokenizerFiles, engine: Any = "tgi", text: str = "a") -> list[str]:
    """Return the tokens that the tokenizer puts around a text of one token."""
    return [token for token in engine_tokenizer(files, engine).encode(text).tokens if token != text]


LLAMA = {"tokenizer_class": "LlamaTokenizerFast", "bos_token": "<|im_start|>", "eos_token": {"content": "<|im_end|>"}}


@pytest.mark.parametrize(
    ("config", "around"),
    [
        (LLAMA, ["<|im_start|>"]),
        (LLAMA | {"tokenizer_class": "LlamaTokenizer", "add_eos_token": True}, ["<|im_start|>", "<|im_end|>"]),
        (LLAMA | {"add_bos_token": False}, []),
        (LLAMA | {"add_bos_token": False, "add_eos_token": True}, ["<|im_end|>"]),
        (LLAMA | {"tokenizer_class": "GemmaTokenizer"}, ["<|im_start|>"]),
        (LLAMA | {"tokenizer_class": "GPTNeoXTokenizerFast"}, []),
        (LLAMA | {"tokenizer_class": "Qwen2Tokenizer"}, []),
        (LLAMA | {"tokenizer_class": "PreTrainedTokenizerFast"}, []),
        (LLAMA | {"tokenizer_class": None}, []),
        (LLAMA | {"bos_token": None}, []),
        (LLAMA | {"bos_token": "<unheard of>"}, []),
    ],
)
def test_classes_that_own_their_special_tokens_put_them_around_text_for_tgi(
    config: dict[str, Any], around: list[str]
) -> None:
    assert added(files_with(config)) == around
    assert added(files_with(config), "vllm") == []


@pytest.mark.slow
def test_deepseeks_bos_is_the_one_that_transformers_4_writes_into_tgis_copy(
    tokenizer_directory: Callable[[str], Path],
) -> None:
    files = from_directory(tokenizer_directory("deepseek-v3"))
    assert engine_tokenizer(files, "tgi").encode("Hello").ids[0] == 0
    assert engine_tokenizer(files, "vllm").encode("Hello").ids[0] != 0


def test_tokens_that_only_the_config_declares_are_added_in_the_order_of_their_ids() -> None:
    declared = {
        "5000": {"content": "<b>", "special": True},
        "4999": {"content": "<a>", "special": False, "normalized": True},
        "1": {"content": "<|im_start|>", "special": True},
        "x": {"content": "<x>"},
        "5001": "no token",
    }
    tokenizer = engine_tokenizer(files_with({"added_tokens_decoder": declared}), "vllm")
    assert tokenizer.encode("<a><b>", add_special_tokens=False).tokens == ["<a>", "<b>"]
    first, second = tokenizer.encode("<a><b>", add_special_tokens=False).ids
    assert second == first + 1
    assert tokenizer.token_to_id("<|im_start|>") == 1


@pytest.mark.parametrize("declared", [None, [], {"1": None}])
def test_a_config_that_declares_nothing_adds_nothing(declared: Any) -> None:
    assert engine_tokenizer(files_with({"added_tokens_decoder": declared}), "tgi").get_vocab_size() == 4096


def test_truncation_and_padding_of_the_file_stay_on_for_tgi_alone(tokenizer_directory: Callable[[str], Path]) -> None:
    files = from_directory(tokenizer_directory("minilm-l6-v2"))
    kept = engine_tokenizer(files, "tgi")
    assert kept.truncation is not None
    assert kept.padding is not None
    assert (kept.truncation["max_length"], kept.padding["length"]) == (128, 128)
    off = engine_tokenizer(files, "vllm")
    assert (off.truncation, off.padding) == (None, None)


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "{}", '{"model": {"type": "BPE"}}', '{"model": 5}'])
def test_a_damaged_tokenizer_is_named(text: str) -> None:
    files = read_files("some/dir", "directory", {"tokenizer.json": text.encode()})
    with pytest.raises(TokenizerError, match=r"^some/dir: tokenizer\.json cannot be used: "):
        engine_tokenizer(files, "tgi")
