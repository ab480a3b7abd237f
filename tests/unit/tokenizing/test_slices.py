"""Parts of a text add up to it, wherever it is cut at all."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from llmshed.errors import PromptError
from llmshed.tokenizing.adapt import engine_tokenizer
from llmshed.tokenizing.encode import ReferenceCounter
from llmshed.tokenizing.load import embedded, from_directory
from llmshed.tokenizing.probes import PROBE_TEXTS
from llmshed.tokenizing.slices import Slicer, alternatives, proved, refusal, slicer

DESCRIBED: dict[str, Any] = orjson.loads(embedded().tokenizer_json)
LLAMA = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split(pattern: str, **more: Any) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False} | more


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(steps), "normalizers": list(steps)}


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
METASPACE = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}


def metaspace(*more: str, **changes: Any) -> dict[str, Any]:
    names = [f"<0x{byte:02X}>" for byte in range(256)] + ["\u2581", "\u2581a", "\u2581\u2581", *more]
    model = {"type": "BPE", "vocab": {name: place for place, name in enumerate(names)}, "byte_fallback": True}
    return {"normalizer": None, "pre_tokenizer": METASPACE, "model": model} | changes


@pytest.fixture(scope="module")
def tokenizer_of(tokenizer_directory: Callable[[str], Path]) -> Callable[[str], tuple[Slicer, ReferenceCounter]]:
    @cache
    def build(name: str) -> tuple[Slicer, ReferenceCounter]:
        files = embedded() if name == "embedded" else from_directory(tokenizer_directory(name))
        cutter = slicer(orjson.loads(files.tokenizer_json))
        assert cutter.cuts
        return cutter, ReferenceCounter(engine_tokenizer(files, "vllm"))

    return build


def add_up(pair: tuple[Slicer, ReferenceCounter], text: str, characters: int) -> bool:
    cutter, whole = pair
    parts = list(cutter.slices(text, characters))
    assert "".join(parts) == text
    return sum(whole.counts(parts, add_special_tokens=False)) == whole.counts([text], add_special_tokens=False)[0]


JOINTS = st.sampled_from(
    [
        *(" ", "  ", "\n", "\n\n", " \n ", "\r\n", "\t", "\u00a0", "\u2028", "\x1c", "\x85", "\u3000"),
        *("a", "It's", "'", "don't ", "12345", "!", "!\n", "...", "\u5b57", "\u3042", "\ud55c", "\u1161", "\u0301"),
        *("\u00e9", "\ufdfa", "\ufb01", "\u200d", "\u2581", "_", "/", "/\n", "<|im_end|>", "</s>", "\x00", "\u3099"),
    ]
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["embedded", "qwen3", "deepseek-v3", "mistral-7b-instruct-v0.3"])
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.lists(JOINTS | st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=20).map("".join))
def test_parts_add_up_to_the_whole(tokenizer_of: Any, name: str, text: str) -> None:
    assert all(add_up(tokenizer_of(name), text, characters) for characters in (1, 2, 5))


@pytest.mark.slow
@settings(max_examples=150)
@given(text=st.lists(JOINTS | st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=20).map("".join))
@pytest.mark.parametrize("pattern", [LLAMA, O200K])
def test_parts_of_public_patterns_are_split_as_in_the_whole(pattern: str, text: str) -> None:
    cutter = slicer(DESCRIBED | {"pre_tokenizer": sequence(split(pattern), BYTES)})
    splitter = pre_tokenizers.Split(Regex(pattern), "isolated")
    whole = [piece for piece, _ in splitter.pre_tokenize_str(text)]
    parts = [piece for part in cutter.slices(text, 1) for piece, _ in splitter.pre_tokenize_str(part)]
    assert parts == whole


def test_texts_are_cut_behind_words_and_between_lines_where_the_pattern_parts_these() -> None:
    by_spaces = slicer(DESCRIBED)
    by_lines = slicer(DESCRIBED | {"pre_tokenizer": sequence(split(LLAMA), BYTES)})
    text = "one  two\nthree\u5b57 \n 4\r\n5\n\u3042 "
    assert list(by_spaces.slices(text, 1)) == ["one", "  two\nthree\u5b57", " \n 4\r\n5\n\u3042", " "]
    assert list(by_lines.slices(text, 1)) == ["one", "  two\n", "three\u5b57", " \n 4\r\n", "5\n", "\u3042", " "]
    assert list(by_lines.slices(text, 9)) == ["one  two\n", "three\u5b57 \n 4\r\n", "5\n\u3042 "]
    assert list(by_lines.slices("", 9)) == [""]


def test_windows_of_the_search_hide_no_cut() -> None:
    cutter = slicer(DESCRIBED)
    for length in (16_383, 16_384, 16_385, 32_768):
        assert [len(part) for part in cutter.slices("a" * length + " b", 1)] == [length, 2]


@pytest.mark.parametrize(("normalizer", "most"), [(None, 524_286), ({"type": "NFKC"}, 131_070)])
def test_a_stretch_without_a_cut_is_bounded_by_what_it_may_become(normalizer: Any, most: int) -> None:
    cutter = slicer(DESCRIBED | {"normalizer": normalizer})
    assert len(list(cutter.slices("\ufdfa" * (most // 3)))) == 1
    with pytest.raises(PromptError, match=f"{most + 3:,} bytes in one piece"):
        list(cutter.slices("\ufdfa" * (most // 3 + 1)))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"truncation": {"max_length": 5}}, "truncation"),
        ({"padding": {}}, "padding"),
        ({"normalizer": {"type": "Strip"}}, "Strip"),
        ({"normalizer": sequence({"type": "NFC"}, {"type": "Prepend", "prepend": "x"})}, "Prepend"),
        ({"pre_tokenizer": None}, "spaces"),
        ({"pre_tokenizer": BYTES}, "spaces"),
        ({"pre_tokenizer": BYTES | {"add_prefix_space": True}}, "ByteLevel"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "Whitespace"),
        ({"pre_tokenizer": sequence(split(r".+ \p{L}+|\s+"), BYTES)}, "not known to stop at a space"),
        ({"pre_tokenizer": sequence(split(r"\p{N}{1,3}"), BYTES)}, "spaces"),
        ({"pre_tokenizer": sequence(split(LLAMA, behavior="MergedWithNext"), BYTES)}, "Split"),
        ({"pre_tokenizer": sequence(split(LLAMA, invert=True), BYTES)}, "Split"),
        ({"added_tokens": [{"content": "<a b>"}]}, "<a b>"),
        ({"added_tokens": [{"content": "<a>", "rstrip": True}]}, "<a>"),
        ({"added_tokens": [{"content": "<a>", "single_word": True}]}, "<a>"),
        ({"model": {"type": "Unigram"}}, "Unigram"),
        ({"model": DESCRIBED["model"] | {"dropout": 0.1}}, "dropout"),
        ({"model": DESCRIBED["model"] | {"end_of_word_suffix": "</w>"}}, "end_of_word_suffix"),
        (metaspace("a\u2581"), "reaches over"),
        (metaspace(normalizer={"type": "Prepend", "prepend": "\u2581"}), "writes something"),
        (metaspace(model={"type": "BPE", "vocab": {"\u2581": 0}, "byte_fallback": True}), "bytes"),
    ],
)
def test_what_keeps_a_tokenizer_from_being_cut(change: dict[str, Any], why: str) -> None:
    reason = refusal(DESCRIBED | change)
    assert reason is not None
    assert why in reason
    assert list(slicer(DESCRIBED | change).slices("a b " * 100, 1)) == ["a b " * 100]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"normalizer": {"type": "NFKC"}},
        {"pre_tokenizer": sequence(split(LLAMA), BYTES)},
        {"pre_tokenizer": sequence(split(O200K), BYTES)},
        {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": True}, {"type": "ByteLevel"})},
        metaspace(),
    ],
)
def test_public_forms_are_cut(change: dict[str, Any]) -> None:
    assert refusal(DESCRIBED | {"normalizer": None} | change) is None


@pytest.mark.parametrize(("name", "why"), [("t5", "Unigram"), ("minilm-l6-v2", "WordPiece")])
def test_other_models_are_counted_whole(tokenizer_directory: Callable[[str], Path], name: str, why: str) -> None:
    assert why in str(refusal(orjson.loads((tokenizer_directory(name) / "tokenizer.json").read_bytes())))


def test_alternatives_are_taken_apart_at_the_top_level_alone() -> None:
    assert alternatives(r"(?i:'s|'t)|[|\]]+|\||a\(|" + "[^\r\n]") == [
        "(?i:'s|'t)",
        r"[|\]]+",
        r"\|",
        r"a\(",
        r"[^\r\n]",
    ]
    assert "|".join(alternatives(LLAMA)) == LLAMA


def test_the_probe_finds_a_tokenizer_that_looks_over_spaces() -> None:
    across = Tokenizer(models.BPE({"a": 0, " ": 1, "b": 2, "a ": 3}, [("a", " ")]))
    cutter = slicer(DESCRIBED)
    assert not proved(cutter, ReferenceCounter(across), ["b", "a b"])
    assert proved(cutter, ReferenceCounter(engine_tokenizer(embedded(), "tgi")), list(PROBE_TEXTS.values()))
