"""Bounds that are known before counting hold for every text, on every reference tokenizer and for both engines."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fakes.reference_counts import TOKENIZERS
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.counter import ExactCounter
from llmshed.tokenizing.load import embedded, from_directory
from llmshed.tokenizing.prompts import TextPrompt

HARD = st.sampled_from(
    [
        " " * 128, "=" * 64, "K" * 30, "abcdefgh" * 20, "\n\n", "\r\n", "\x00", "\u200d", "\u2581", "\U0010ffff",
        "\u212a", "\u1fef", "\u037e", "\u1fbe\u0308\u0301", "\u0390", "\U0001d160", "\u1112\u1161\u11ab", "e\u0301",
        "\ufdfa", "\ufb03", "\u0130", "\U0001f469\u200d\U0001f467", "<|im_end|>", "</s>", "[INST]",
        "<\uff5cUser\uff5c>",
    ]
)  # fmt: skip
TEXTS = st.lists(HARD | st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=14).map("".join)


@pytest.fixture(scope="module")
def counters(tokenizer_directory: Callable[[str], Path]) -> list[ExactCounter]:
    names = [from_directory(tokenizer_directory(name)) for name in TOKENIZERS]
    return [build_counter(files, engine) for files in (*names, embedded()) for engine in ("tgi", "vllm")]


@pytest.mark.slow
@pytest.mark.timeout(300)
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS, special=st.booleans())
@example(text="", special=True)
@example(text=" " * 4096, special=False)
@example(text="\u212a" * 500, special=False)
@example(text="\u1fbe\u0308\u0301" * 500, special=True)
@example(text="\U0001d160" * 500, special=True)
def test_no_count_lies_outside_its_bounds(counters: list[ExactCounter], text: str, special: bool) -> None:  # noqa: FBT001 - hypothesis passes by name
    prompt = TextPrompt(text, add_special_tokens=special)
    for counter in counters:
        low, high = counter.bounds(prompt)
        tokens = counter.count(prompt).tokens
        assert low <= tokens
        assert high is None or tokens <= high


def test_the_bounds_of_plain_prose_are_worth_something() -> None:
    prose = TextPrompt("The queue grew faster than it drained. " * 1000)
    for counter in [build_counter(embedded(), engine) for engine in ("tgi", "vllm")]:
        low, high = counter.bounds(prose)
        assert low > 200
        assert high is not None
