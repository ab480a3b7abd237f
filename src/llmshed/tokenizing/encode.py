"""Counting plain texts, the one thing that the cache and the optional backend have in common."""

from collections.abc import Sequence
from typing import Protocol

from tokenizers import Tokenizer

from llmshed.tokenizing.panics import panics_told


class TextCounter(Protocol):
    """Counts texts; thread safe."""

    def counts(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[int]:
        """Return the number of tokens of each text; `add_special_tokens` asks for the tokenizer's BOS and EOS.

        Texts must be Unicode: without lone surrogates.
        """


class ReferenceCounter:
    """Counts with the tokenizers library, which the engines use too.

    Only `encode_batch_fast` is called. `encode` keeps the interpreter's lock while it works, so that one megabyte in a
    thread would stop the event loop for over a second.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take the tokenizer; its truncation and padding stay as they are set."""
        self._tokenizer = tokenizer
        # A padded batch is padded to its longest text, so each text must then be a batch of its own.
        self._one_by_one = tokenizer.padding is not None

    def counts(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[int]:
        """Return the number of tokens of each text.

        Raises:
            PromptError: the library fails on a text.
        """
        batches = [[text] for text in texts] if self._one_by_one else [list(texts)]
        with panics_told("the model's tokenizer fails on this text"):
            return [
                len(encoding)
                for batch in batches
                for encoding in self._tokenizer.encode_batch_fast(batch, add_special_tokens=add_special_tokens)
            ]
