"""Words that are one token each, wherever they stand.

The problem: a prompt of exactly n tokens has to be made of text, and tokenizers join and split what stands together. A
word of letters with a space before it is a piece of its own in nearly every tokenizer. So words that are one token both
at the beginning of a text and inside it add up: n of them, in any order, are n tokens.
"""

import re
from collections.abc import Iterable
from itertools import islice
from random import Random
from typing import TYPE_CHECKING

from llmshed.errors import TokenizerError
from llmshed.tokenizing.prompts import TextPrompt

if TYPE_CHECKING:
    from llmshed.tokenizing.base import PromptCounter

MOST_WORDS = 1024
"""Two random texts then agree in their first two words once in a million."""
LEAST_WORDS = 32
_TRIED = 8192
"""Entries of a vocabulary that are tried, so that a strange one of a million takes no minute."""
_WORD = re.compile("[Ġ▁ ]([a-z]{2,12})")
"""A word as vocabularies write it: with the mark that stands for the space before it."""
_ANCHOR = "the"


def single_token_words(vocabulary: Iterable[str], counter: "PromptCounter") -> tuple[str, ...]:
    """Return up to `MOST_WORDS` different words that are one token each wherever they stand, always the same ones.

    Args:
        vocabulary: entries of the tokenizer's vocabulary, in any order.
        counter: of the same tokenizer.

    Raises:
        TokenizerError: there are fewer than `LEAST_WORDS`, so that texts would resemble each other.
    """
    found = sorted({match[1] for entry in vocabulary if (match := _WORD.fullmatch(entry)) is not None})
    Random(0).shuffle(found)  # noqa: S311 - which words are taken, no secret
    around = counter.count(TextPrompt(f"{_ANCHOR} {_ANCHOR}")).tokens

    def is_single(word: str) -> bool:
        return counter.count(TextPrompt(f"{word} {_ANCHOR} {word}")).tokens == around + 1

    words = tuple(islice(filter(is_single, found[:_TRIED]), MOST_WORDS))
    if len(words) < LEAST_WORDS:
        raise TokenizerError(
            f"the tokenizer has {len(words)} words of one token; {LEAST_WORDS} are needed for prompts of known sizes"
        )
    return words
