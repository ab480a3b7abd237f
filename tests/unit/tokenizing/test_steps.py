"""Long prompts are counted step by step: the same count, or a bound that is true."""

from dataclasses import replace

import orjson
import pytest

from llmshed.errors import PromptError
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.counter import STEP_CHARACTERS, ExactCounter
from llmshed.tokenizing.load import embedded
from llmshed.tokenizing.prompts import ChatPrompt, IdsPrompt, PromptCount, TextPrompt
from llmshed.tokenizing.slices import MOST_UNCUT_BYTES, SLICE_CHARACTERS

WORDS = "The gateway counts 1,234 tokens before it lets a request pass.\n"
LONG = WORDS * 2_500


@pytest.fixture(scope="module")
def counter() -> ExactCounter:
    return build_counter(embedded(), "tgi")


@pytest.fixture(scope="module")
def whole() -> ExactCounter:
    """Counts every text in one go."""
    made = build_counter(embedded(), "tgi")
    made._slicer = made._slicer.without_cuts()
    return made


def counted(
    counter: ExactCounter, prompt: TextPrompt | ChatPrompt | IdsPrompt, enough: int | None = None
) -> PromptCount:
    """Take all steps and return the last."""
    *pauses, count = counter.steps(prompt, enough)
    assert set(pauses) <= {None}
    assert count is not None
    return count


def test_a_long_text_has_the_count_of_the_whole_in_as_many_steps_as_it_needs(
    counter: ExactCounter, whole: ExactCounter
) -> None:
    for prompt in (TextPrompt(LONG), ChatPrompt([{"role": "user", "content": LONG}])):
        *pauses, last = counter.steps(prompt)
        assert len(LONG) // STEP_CHARACTERS <= len(pauses) <= 2 * len(LONG) // STEP_CHARACTERS
        assert [*whole.steps(prompt)] == [last]
        assert counter.count(prompt) == last


def test_a_short_text_takes_one_step(counter: ExactCounter) -> None:
    assert list(counter.steps(TextPrompt(WORDS), 1_000)) == [counter.count(TextPrompt(WORDS))]
    assert list(counter.steps(IdsPrompt((1, 2)), 1)) == [PromptCount(2, 0)]


def test_counting_ends_where_it_is_enough_and_says_so(counter: ExactCounter) -> None:
    tokens = counter.count(TextPrompt(LONG)).tokens
    for prompt in (TextPrompt(LONG), ChatPrompt([{"role": "user", "content": LONG}])):
        bound = counted(counter, prompt, tokens // 2)
        assert bound.is_bound
        assert tokens // 2 < bound.tokens < 0.7 * tokens
        assert bound.blocks == ()
    exact = counted(counter, TextPrompt(LONG), tokens)
    assert (exact.tokens, exact.is_bound) == (tokens, False)


def test_bytes_that_prove_enough_are_not_counted_even_in_a_chat(
    counter: ExactCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter, "_texts", None)
    bound = counted(counter, ChatPrompt([{"role": "user", "content": LONG}]), 100)
    assert bound.is_bound
    assert 100 < bound.tokens <= len(LONG)


def test_special_tokens_and_images_are_counted_once_beside_the_slices() -> None:
    counter = build_counter(embedded(), "tgi", image_tokens=50)
    text = WORDS * 600
    assert len(text) > SLICE_CHARACTERS
    marked = f"{text}![](http://a/b.png) {text}"
    apart = counter.count(TextPrompt(text)).tokens + counter.count(TextPrompt(f" {text}")).tokens
    assert counter.count(TextPrompt(marked)).tokens == apart + 50


def test_a_tokenizer_that_panics_fails_on_its_prompt_and_on_nothing_else() -> None:
    described = orjson.loads(embedded().tokenizer_json)
    split = {"type": "Split", "pattern": {"Regex": "(a+)+b"}, "behavior": "Isolated", "invert": False}
    described["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, described["pre_tokenizer"]]}
    counter = build_counter(replace(embedded(), tokenizer_json=orjson.dumps(described).decode(), templates={}), "tgi")
    with pytest.raises(PromptError, match="fails on this text"):
        counter.count(TextPrompt("x " + "a" * 100))
    assert counter.count(TextPrompt("x a")).tokens == 2


def test_a_text_without_a_place_to_cut_is_counted_up_to_its_bound(counter: ExactCounter) -> None:
    assert counted(counter, TextPrompt("=" * 100_000)).tokens > 0
    with pytest.raises(PromptError, match="in one piece"):
        counter.count(TextPrompt("=" * (MOST_UNCUT_BYTES + 1)))
