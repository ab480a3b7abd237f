"""Prompts of an exact number of tokens, for tests in which the number matters."""

import random

from llmshed.tokenizing.base import PromptCounter
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.load import find
from llmshed.tokenizing.prompts import TextPrompt

WORDS = (" the", " of", " and", " to", " in", " is", " that", " for", " it", " as")


def text_of_tokens(tokens: int, counter: PromptCounter | None = None) -> str:
    """Return a text of exactly so many tokens on a native route, by the embedded tokenizer unless another is given."""
    counter = counter or build_counter(find("embedded"), "tgi")

    def count(text: str) -> int:
        return counter.count(TextPrompt(text)).tokens

    around = count("")
    (word,) = [word for word in WORDS if count(word) == count(word * 2) - count(word) + around == around + 1][:1]
    text = word * (tokens - around)
    assert count(text) == tokens
    return text


def prose(size_bytes: int, seed: int) -> str:
    """Return words that no other seed gives, so that nothing counted before helps with them."""
    drawn = random.Random(seed)  # noqa: S311 - words, no secrets
    letters = "etaoinshrdlucmfw"
    words = ["".join(drawn.choices(letters, k=drawn.randint(2, 9))) for _ in range(size_bytes // 5)]
    return " ".join(words)[:size_bytes]
