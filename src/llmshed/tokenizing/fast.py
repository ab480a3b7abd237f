"""Counting with fastokens (extra `fast`), trusted only as long as it agrees with the tokenizers library.

It is tens of times faster. What it costs to be wrong is a request that the engine refuses or a budget that is passed,
so it is compared on probe texts at start and on every n-th text while it runs, and dropped at the first difference.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from llmshed.errors import TokenizerError
from llmshed.tokenizing.encode import TextCounter

SAMPLE_EVERY = 1000
"""One text in so many is counted by both; at 60 times the speed this costs some 6 per cent."""


class FastCounter:
    """Counts with fastokens until it differs once from the reference, and with the reference from then on."""

    def __init__(
        self,
        tokenizer_json: str,
        reference: TextCounter,
        *,
        sample_every: int = SAMPLE_EVERY,
        on_mismatch: Callable[[str], None],
    ) -> None:
        """Load the tokenizer.

        `on_mismatch` is given one sentence, without prompt text, at the first difference, in whatever thread counts.

        Raises:
            TokenizerError: fastokens is not installed or cannot use this tokenizer.
        """
        self._fast = _load(tokenizer_json)
        self._reference = reference
        self._sample_every = sample_every
        self._on_mismatch = on_mismatch
        self._turns = itertools.count(1)
        self.trusted = True

    def check(self, texts: Sequence[str]) -> bool:
        """Compare both on probe texts, with and without special tokens, and say whether fastokens is trusted."""
        for add_special_tokens in (True, False):
            expected = self._reference.counts(texts, add_special_tokens=add_special_tokens)
            self._compare(expected, self._guarded(texts, add_special_tokens=add_special_tokens), "a probe text")
        return self.trusted

    def counts(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[int]:
        """Return the number of tokens of each text."""
        found = self._guarded(texts, add_special_tokens=add_special_tokens) if self.trusted else None
        if found is None:
            return self._reference.counts(texts, add_special_tokens=add_special_tokens)
        # itertools.count hands out each number once, to whichever thread asks.
        sampled = [place for place in range(len(texts)) if next(self._turns) % self._sample_every == 0]
        if sampled:
            expected = self._reference.counts(
                [texts[place] for place in sampled], add_special_tokens=add_special_tokens
            )
            self._compare(expected, [found[place] for place in sampled], "a sampled text")
            for place, tokens in zip(sampled, expected, strict=True):
                found[place] = tokens
        return found

    def _guarded(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[int] | None:
        try:
            encodings = self._fast.encode_batch(list(texts), add_special_tokens=add_special_tokens)
        except Exception as error:  # noqa: BLE001 - whatever an optional backend raises, the reference still counts
            self._distrust(f"fastokens failed ({type(error).__name__})")
            return None
        return [len(encoding) for encoding in encodings]

    def _compare(self, expected: Sequence[int], found: Sequence[int] | None, where: str) -> None:
        if found is None:
            return
        for right, wrong in zip(expected, found, strict=True):
            if right != wrong:
                self._distrust(f"fastokens counted {wrong} tokens for {right} in {where}")
                return

    def _distrust(self, sentence: str) -> None:
        if self.trusted:
            self.trusted = False
            self._on_mismatch(f"{sentence}; counting goes on with the tokenizers library")


def _load(tokenizer_json: str) -> Any:
    try:
        # Imported late: it is an optional extra.
        from fastokens import Tokenizer  # noqa: PLC0415 - see above
    except ImportError:
        raise TokenizerError("fastokens is not installed: pip install 'llmshed[fast]'") from None
    try:
        return Tokenizer.from_json_str(tokenizer_json)
    except Exception as error:  # noqa: BLE001 - the library raises bare errors for what it cannot read
        raise TokenizerError(f"fastokens cannot use this tokenizer: {str(error).strip()[:200]}") from None
