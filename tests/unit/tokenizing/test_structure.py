import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tokenizers import normalizers, pre_tokenizers

from llmshed.tokenizing.load import embedded
from llmshed.tokenizing.structure import UNPROVED, Structure, byte_symbols, steps, structure


def described(**changes: Any) -> dict[str, Any]:
    """Return a byte-level BPE whose longest token has 5 bytes; `model__x` changes a field of the model."""
    vocabulary = {symbol: place for place, symbol in enumerate(byte_symbols())} | {"hello": 256}
    whole: dict[str, Any] = {
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "added_tokens": [],
        "model": {"type": "BPE", "vocab": vocabulary},
    }
    for name, value in changes.items():
        if name.startswith("model__"):
            whole["model"][name.removeprefix("model__")] = value
        else:
            whole[name] = value
    return whole


def metaspace(pre_tokenizer: Any, normalizer: Any = None, **vocabulary: int) -> dict[str, Any]:
    tokens = {f"<0x{byte:02X}>": byte for byte in range(256)} | {"\u2581": 256, "\u2581hello": 257} | vocabulary
    return {
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "model": {"type": "BPE", "vocab": tokens, "byte_fallback": True},
    }


def token(content: str, **flags: bool) -> dict[str, Any]:
    return {"content": content, **flags}


SPLIT = {"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated"}
BYTES = {"type": "ByteLevel", "add_prefix_space": False}


def sequence(*steps_: Any) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(steps_), "normalizers": list(steps_)}


@pytest.mark.parametrize(
    ("changes", "proved"),
    [
        ({}, Structure(5, 1)),
        ({"pre_tokenizer": sequence(SPLIT, sequence(BYTES))}, Structure(5, 1)),
        ({"pre_tokenizer": BYTES | {"add_prefix_space": True}}, Structure(5, 2)),
        ({"normalizer": {"type": "NFC"}}, Structure(5, 3)),
        ({"normalizer": sequence({"type": "NFD"}, {"type": "NFC"})}, Structure(13, 9)),
        ({"normalizer": sequence()}, Structure(5, 1)),
        ({"added_tokens": [token("<|long|>")]}, Structure(8, 1)),
        ({"added_tokens": [token("\uff4c")]}, Structure(5, 1)),
        ({"added_tokens": [token("<|l|>", normalized=True)], "normalizer": {"type": "NFC"}}, Structure(55, 3)),
        ({"added_tokens": [token("<l>", rstrip=True)]}, Structure(None, 1)),
        ({"added_tokens": [token("<l>", lstrip=True)]}, Structure(None, 1)),
        ({"pre_tokenizer": sequence(SPLIT | {"behavior": "Removed"}, BYTES)}, Structure(None, 1)),
        ({"pre_tokenizer": sequence({"type": "WhitespaceSplit"}, BYTES)}, Structure(None, 1)),
        ({"model__vocab": {"a": 0}}, Structure(None, 1)),
        ({"normalizer": {"type": "NFKC"}}, UNPROVED),
        ({"normalizer": {"type": "Lowercase"}}, UNPROVED),
        ({"pre_tokenizer": None}, UNPROVED),
        ({"pre_tokenizer": sequence(BYTES, SPLIT)}, UNPROVED),
        ({"model__dropout": 0.1}, UNPROVED),
        ({"model__end_of_word_suffix": "</w>"}, UNPROVED),
        ({"model__continuing_subword_prefix": "##"}, UNPROVED),
        ({"model__type": "Unigram"}, UNPROVED),
        ({"model__type": "WordPiece"}, UNPROVED),
    ],
)
def test_byte_level_bpe(changes: dict[str, Any], proved: Structure) -> None:
    assert structure(described(**changes)) == proved


META = {"type": "Metaspace", "replacement": "\u2581", "split": False}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
PREPEND = {"type": "Prepend", "prepend": "\u2581"}


@pytest.mark.parametrize(
    ("whole", "proved"),
    [
        (metaspace(META | {"prepend_scheme": "first"}), Structure(8, 1, 1)),
        (metaspace(META | {"prepend_scheme": "never"}), Structure(8, 1)),
        (metaspace(META | {"prepend_scheme": "always"}), Structure(8, 2)),
        (metaspace(None, sequence(PREPEND, REPLACE)), Structure(8, 2)),
        (metaspace(META | {"replacement": "_", "prepend_scheme": "first"}), UNPROVED),
        (metaspace({"type": "Whitespace"}), UNPROVED),
        (metaspace(None, {"type": "NFKC"}), UNPROVED),
    ],
)
def test_metaspace_bpe_with_byte_fallback(whole: dict[str, Any], proved: Structure) -> None:
    assert structure(whole) == proved


def test_byte_fallback_without_all_bytes_proves_nothing() -> None:
    whole = metaspace(META | {"prepend_scheme": "never"})
    del whole["model"]["vocab"]["<0x0A>"]
    assert structure(whole) == UNPROVED


@pytest.mark.parametrize(
    ("tokenizer", "proved"),
    [
        # 48 bytes that are no ASCII outweigh its token of 128 spaces.
        ("qwen3", Structure(168, 3)),
        ("mistral-7b-instruct-v0.3", Structure(48, 1, 1)),
        ("t5", UNPROVED),
        ("minilm-l6-v2", UNPROVED),
    ],
)
def test_reference_tokenizers(tokenizer_directory: Callable[[str], Path], tokenizer: str, proved: Structure) -> None:
    assert structure(orjson.loads((tokenizer_directory(tokenizer) / "tokenizer.json").read_bytes())) == proved


def test_the_embedded_tokenizer_is_proved_both_ways() -> None:
    proved = structure(orjson.loads(embedded().tokenizer_json))
    assert proved.tokens_per_byte == 1
    assert proved.bytes_per_token is not None


def test_byte_symbols_are_those_of_the_tokenizers_library() -> None:
    for byte, symbol in enumerate(byte_symbols()):
        if byte < 0x80:
            ((piece, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(
                chr(byte)
            )
            assert piece == symbol
    assert sorted(byte_symbols()) == sorted(pre_tokenizers.ByteLevel.alphabet())
    assert byte_symbols()[0xC3] + byte_symbols()[0xA9] == "Ã©"


PLANE = 0x10000


def changed_by(form: str) -> dict[str, str]:
    """Return what becomes of each character alone that a form changes.

    A line feed composes with nothing and lets nothing pass, so that many characters can be told apart in one text.
    """
    normalise = getattr(normalizers, form)().normalize_str
    changed: dict[str, str] = {}
    for first in range(0, sys.maxunicode, PLANE):
        plane = [chr(code) for code in range(first, first + PLANE) if not 0xD800 <= code <= 0xDFFF and code != 0x0A]
        became = normalise("\n".join(plane)).split("\n")
        changed |= {before: after for before, after in zip(plane, became, strict=True) if before != after}
    return changed


@pytest.mark.slow
@pytest.mark.parametrize(("form", "number"), [("NFC", 1_000), ("NFD", 13_000)])
def test_normalising_grows_no_text_more_than_threefold(form: str, number: int) -> None:
    # Composing never adds bytes, so decomposing each character alone bounds the growth of any text.
    decomposed, changed = changed_by("NFD"), changed_by(form)
    assert max(size(parts) / size(character) for character, parts in decomposed.items()) == 3
    assert all(size(became) <= size(decomposed[character]) for character, became in changed.items())
    assert len(changed) > number
    assert getattr(normalizers, form)().normalize_str("\n") == "\n"


@pytest.mark.slow
def test_normalising_shrinks_no_text_more_than_three_and_a_half_times_and_ascii_hardly_at_all() -> None:
    # Let every decomposed character weigh as much as the largest character that becomes it alone. Then no text weighs
    # less than it has bytes, and the shrinking of a text is at most the greatest weight per byte of a result. A
    # character that is not changed and that nothing else becomes weighs what it has.
    parts = changed_by("NFD")
    weight = {part: size(part) for whole in parts.values() for part in whole}
    for character, whole in parts.items():
        if len(whole) == 1:
            weight[whole] = max(weight[whole], size(character))
    assert all(sum(weight[part] for part in whole) >= size(character) for character, whole in parts.items())
    results = {character for whole in parts.values() for character in whole}
    composed = changed_by("NFC")
    results |= {composed.get(character, character) for character in parts}
    shrunk = {
        result: sum(weight[part] for part in normalizers.NFD().normalize_str(result)) / size(result)
        for result in results
    }
    assert max(shrunk.values()) == 3.5
    assert len(normalizers.NFC().normalize_str("\u1fbe\u0308\u0301").encode()) * 3.5 == 7
    assert {text: factor for text, factor in shrunk.items() if text.isascii() and factor > 1} == {
        "K": 3,
        "`": 3,
        ";": 2,
    }


def test_sequences_are_taken_apart_in_order() -> None:
    nested = {
        "type": "Sequence",
        "normalizers": [{"type": "NFC"}, {"type": "Sequence", "normalizers": [{"type": "Strip"}]}],
    }
    assert [step["type"] for step in steps(nested, "normalizers")] == ["NFC", "Strip"]
    assert list(steps(None, "normalizers")) == []


def size(text: str) -> int:
    return len(text.encode())
