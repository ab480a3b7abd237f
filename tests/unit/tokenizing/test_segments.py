import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from llmshed.tokenizing.adapt import engine_tokenizer
from llmshed.tokenizing.encode import ReferenceCounter
from llmshed.tokenizing.load import embedded, from_directory
from llmshed.tokenizing.probes import PROBE_TEXTS
from llmshed.tokenizing.segments import SegmentCounter, _alternatives, proved, refusal

DESCRIBED: dict[str, Any] = orjson.loads(embedded().tokenizer_json)
TURNS = "".join(f"<|im_start|>user\nturn {number}<|im_end|>\n" for number in range(20))


class Watched:
    """Counts with the tokenizer itself and notes what it was asked."""

    def __init__(self) -> None:
        self.inner = ReferenceCounter(engine_tokenizer(embedded(), "tgi"))
        self.asked: list[str] = []

    def counts(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[int]:
        self.asked += texts
        return self.inner.counts(texts, add_special_tokens=add_special_tokens)


def cached(inner: Any, most_bytes: int = 10**6) -> SegmentCounter:
    return SegmentCounter(inner, DESCRIBED, special_tokens=0, most_bytes=most_bytes)


def one(counter: Any, text: str) -> int:
    (tokens,) = counter.counts([text], add_special_tokens=False)
    return int(tokens)


def test_a_repeated_turn_is_counted_once_and_a_new_one_alone() -> None:
    watched = Watched()
    counter = cached(watched)
    assert one(counter, TURNS) == one(watched.inner, TURNS)
    watched.asked.clear()
    assert one(counter, TURNS + "<|im_start|>user\nnew<|im_end|>") == one(watched.inner, TURNS) + 2 + one(
        watched.inner, "user\nnew"
    )
    assert watched.asked == ["user\nnew"]


def test_the_cache_stays_within_its_bytes() -> None:
    watched = Watched()
    counter = cached(watched, most_bytes=3000)
    for number in range(50):
        one(counter, f"text number {number}<|im_end|>")
    assert counter._cache.currsize <= 3000
    assert 1 < len(counter._cache) < 10


def test_a_segment_that_the_cache_cannot_hold_is_counted_all_the_same() -> None:
    watched = Watched()
    counter = cached(watched, most_bytes=500)
    assert one(counter, "word " * 1000) == one(watched.inner, "word " * 1000)
    assert len(counter._cache) == 0


@pytest.mark.parametrize("text", ["a" * (2**20 + 1), "<|im_end|>" * 5000])
def test_texts_that_are_too_long_or_fall_into_too_many_pieces_are_counted_whole(text: str) -> None:
    watched = Watched()
    assert one(cached(watched), text) == one(watched.inner, text)
    assert watched.asked == [text]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"truncation": {"max_length": 5}}, "truncation"),
        ({"padding": {}}, "padding"),
        ({"normalizer": {"type": "Prepend", "prepend": "x"}}, "Prepend"),
        ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Strip"}]}}, "Strip"),
        ({"pre_tokenizer": {"type": "Metaspace"}}, "Metaspace"),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}]}}, "Whitespace"),
        ({"added_tokens": [{"content": "<x>", "lstrip": True}]}, "<x>"),
        ({"added_tokens": [{"content": "<x>", "rstrip": True}]}, "<x>"),
        ({"added_tokens": [{"content": "<x>", "single_word": True}]}, "<x>"),
        ({"added_tokens": [{"content": "<x>", "normalized": True}]}, "no added token"),
        ({"added_tokens": []}, "no added token"),
        ({"model": {"dropout": 0.1}}, "random"),
    ],
)
def test_rules_that_keep_a_tokenizer_from_being_split(change: dict[str, Any], why: str) -> None:
    assert refusal(DESCRIBED) is None
    reason = refusal(DESCRIBED | change)
    assert reason is not None
    assert why in reason


@pytest.mark.parametrize(("tokenizer", "why"), [("mistral-7b-instruct-v0.3", "Metaspace"), ("t5", "Precompiled")])
def test_sentencepiece_tokenizers_are_refused(
    tokenizer_directory: Callable[[str], Path], tokenizer: str, why: str
) -> None:
    reason = refusal(orjson.loads((tokenizer_directory(tokenizer) / "tokenizer.json").read_bytes()))
    assert reason is not None
    assert why in reason


def test_the_probe_finds_a_tokenizer_for_which_splitting_is_wrong(tokenizer_directory: Callable[[str], Path]) -> None:
    files = from_directory(tokenizer_directory("mistral-7b-instruct-v0.3"))
    described = orjson.loads(files.tokenizer_json)
    whole = ReferenceCounter(engine_tokenizer(files, "vllm"))
    split = SegmentCounter(whole, described, special_tokens=1, most_bytes=10**6)
    assert not proved(split, whole, described, list(PROBE_TEXTS.values()))


def test_the_probe_passes_where_splitting_is_right() -> None:
    whole = ReferenceCounter(engine_tokenizer(embedded(), "tgi"))
    assert proved(cached(whole), whole, DESCRIBED, ["some words", " more of them", ""])


def test_special_tokens_around_a_text_are_added_once() -> None:
    around = SegmentCounter(Watched(), DESCRIBED, special_tokens=2, most_bytes=10**6)
    assert around.counts(["a<|im_end|>b"], add_special_tokens=True) == [5]


def test_the_longest_of_tokens_that_begin_alike_cuts() -> None:
    cut = re.compile(_alternatives(["<a>", "<a>b", "<a>bc!", "[x]", "<", "."]))
    assert cut.findall("<a>bc<a>bc!<a><[x].y") == ["<a>b", "<a>bc!", "<a>", "<", "[x]", "."]


def test_threads_share_the_cache() -> None:
    watched = Watched()
    counter = cached(watched, most_bytes=20_000)
    texts = [f"<|im_start|>user\n{number % 7} {'x' * number}<|im_end|>" for number in range(60)]
    right = watched.inner.counts(texts, add_special_tokens=False)
    found: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: found.append(counter.counts(texts, add_special_tokens=False))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [right] * 8
