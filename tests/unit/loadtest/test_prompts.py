"""Prompts: exact counts with real tokenizers, the same by seed, alike only where they are to be."""

from collections.abc import Callable
from itertools import pairwise, takewhile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.replaying import embedded_prompts
from llmshed.errors import PromptError, TokenizerError
from llmshed.loadtest.prompts import Part, PromptMaker, shared_parts
from llmshed.loadtest.words import LEAST_WORDS, MOST_WORDS, single_token_words
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.load import find
from llmshed.tokenizing.prompts import ChatPrompt, TextPrompt
from llmshed.workload.asks import Ask

COUNTER = build_counter(find("embedded"), "tgi")


@pytest.mark.parametrize("chat", [False, True])
@settings(max_examples=20)
@given(tokens=st.integers(12, 600), shared=st.integers(0, 800), name=st.text(max_size=5))
def test_the_count_is_the_one_that_was_asked_for(chat: bool, tokens: int, shared: int, name: str) -> None:  # noqa: FBT001 - a case
    prompts = embedded_prompts(chat=chat)
    text = prompts.text(name, tokens, [Part("a", shared)] if shared else [])
    prompt = ChatPrompt([{"role": "user", "content": text}]) if chat else TextPrompt(text)
    assert COUNTER.count(prompt).tokens == tokens


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qwen3", "t5"])
def test_real_tokenizers_count_so_too(tokenizer_directory: Callable[[str], Path], name: str) -> None:
    files = find(str(tokenizer_directory(name)))
    prompts = PromptMaker(files, "vllm", chat=name != "t5", seed=3)
    assert [prompts.count(prompts.text("a", tokens, [Part("s", 20)])) for tokens in (17, 256, 1024)] == [17, 256, 1024]


def test_one_seed_and_name_give_one_text_and_others_another() -> None:
    prompts = embedded_prompts()
    text = prompts.text("a", 200)
    assert text == prompts.text("a", 200)
    assert _common_words(text, prompts.text("b", 200)) <= 2
    assert _common_words(text, embedded_prompts(seed=1).text("a", 200)) <= 2


def test_parts_are_shared_and_nothing_after_them() -> None:
    prompts = embedded_prompts()
    first = prompts.text("a", 300, [Part("x", 100), Part("y", 50)])
    second = prompts.text("b", 200, [Part("x", 100), Part("z", 50)])
    assert 100 <= _common_words(first, second) <= 102
    third = prompts.text("c", 300, [Part("x", 100), Part("y", 50)])
    assert 150 <= _common_words(first, third) <= 152


def test_an_ask_shares_the_tokens_of_its_group() -> None:
    prompts = embedded_prompts()
    asks = [
        Ask(str(number), 200, 1, runs_to_ceiling=False, lane=None, prefix_tokens=60, prefix_group=7)
        for number in (1, 2)
    ]
    first, second = (prompts.text(ask.id, ask.input_tokens, shared_parts(ask)) for ask in asks)
    assert 60 <= _common_words(first, second) <= 62
    assert shared_parts(Ask("3", 200, 1, runs_to_ceiling=False, lane=None)) == ()


def test_a_prompt_shorter_than_what_stands_around_it_cannot_be_made() -> None:
    prompts = embedded_prompts(chat=True)
    assert prompts.count(prompts.text("a", prompts.least_tokens)) == prompts.least_tokens
    with pytest.raises(PromptError, match=f"template and special tokens around one word are {prompts.least_tokens}"):
        prompts.text("a", prompts.least_tokens - 1)


def test_words_are_one_token_wherever_they_stand() -> None:
    with pytest.raises(TokenizerError, match=f"{LEAST_WORDS} are needed"):
        single_token_words(["Ġthe", "Ġzq"], COUNTER)
    words = single_token_words((f"Ġ{word}" for word in embedded_prompts()._words), COUNTER)
    assert LEAST_WORDS <= len(words) <= MOST_WORDS
    assert all(COUNTER.count(TextPrompt(f"{one} {other}")).tokens == 2 for one, other in pairwise(words))


def _common_words(first: str, second: str) -> int:
    pairs = zip(first.split(" "), second.split(" "), strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
