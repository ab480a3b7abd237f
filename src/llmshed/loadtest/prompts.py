"""Prompts of an exact token count, the same for the same seed.

A prompt is a row of words: those of its shared parts, which any prompt that names the same parts begins with, and its
own, which no other prompt has. It is counted by the engine's tokenizer in the form in which it is sent, and words are
added or taken away until the count is the one that was asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from llmshed.errors import PromptError
from llmshed.loadtest.words import single_token_words
from llmshed.tokenizing.adapt import engine_tokenizer
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.prompts import ChatPrompt, Prompt, TextPrompt

if TYPE_CHECKING:
    from llmshed.tokenizing.files import EngineName, TokenizerFiles
    from llmshed.workload.asks import Ask

MOST_TRIES = 8
"""Texts that are counted for one prompt; the first is right where words add up, which is nearly everywhere."""


@dataclass(frozen=True, slots=True)
class Part:
    """The beginning of a prompt that others share.

    Args:
        key: which text it is: parts of equal keys begin alike.
        tokens: how long it is.
    """

    key: str
    tokens: int


def shared_parts(ask: "Ask") -> tuple[Part, ...]:
    """Return what an ask shares with those of its group."""
    return (Part(f"group/{ask.prefix_group}", ask.prefix_tokens),) if ask.prefix_tokens else ()


class PromptMaker:
    """Makes texts whose count, in the form in which they are sent, is exact.

    Args:
        files: the tokenizer of the engine that is asked.
        engine: whose way of rendering and counting is followed.
        chat: whether the text is sent as the one message of a chat; else as plain text with special tokens.
        seed: of every draw.

    Raises:
        TokenizerError: the tokenizer cannot be used, or has too few words.
    """

    def __init__(self, files: "TokenizerFiles", engine: "EngineName", *, chat: bool, seed: int) -> None:
        self._counter = build_counter(files, engine)
        self._words = single_token_words(engine_tokenizer(files, engine).get_vocab(), self._counter)
        self._chat = chat
        self._seed = seed
        self.around_tokens = self.count(self._words[0]) - 1

    @property
    def least_tokens(self) -> int:
        """Return the tokens of the shortest prompt: template and special tokens around one word."""
        return self.around_tokens + 1

    def count(self, text: str) -> int:
        """Return the input tokens of a text as it is sent."""
        return self._counter.count(as_prompt(text, chat=self._chat)).tokens

    def plain_count(self, text: str) -> int:
        """Return the tokens of a plain text, special tokens included."""
        return self._counter.count(as_prompt(text, chat=False)).tokens

    def text(self, name: str, input_tokens: int, parts: Sequence[Part] = ()) -> str:
        """Return a text of exactly so many input tokens.

        Args:
            name: decides the words that are its own, beside the seed.
            input_tokens: with template and special tokens, at least `least_tokens`.
            parts: what it begins with; cut where it would leave no word of its own.

        Raises:
            PromptError: there is no such text, since it is too short or the tokenizer counts words unevenly.
        """
        if input_tokens < self.least_tokens:
            raise PromptError(
                f"a prompt of {input_tokens} tokens cannot be made: template and special tokens around one word are"
                f" {self.least_tokens}"
            )
        room = input_tokens - self.around_tokens
        shared = self._shared(parts, room - 1)
        own = self._drawn(f"own/{name}", room - len(shared))
        more = Random(f"{self._seed}/more/{name}")  # noqa: S311 - text without meaning, no secret
        for _ in range(MOST_TRIES):
            text = " ".join((*shared, *own))
            missing = input_tokens - self.count(text)
            if missing == 0:
                return text
            if missing > 0:
                own += more.choices(self._words, k=missing)
            else:
                del own[max(1, len(own) + missing) :]
                own[-1] = more.choice(self._words)
        raise PromptError(
            f"no text of exactly {input_tokens} tokens was found in {MOST_TRIES} tries with this tokenizer"
        )

    def _shared(self, parts: Sequence[Part], most: int) -> list[str]:
        words: list[str] = []
        for part in parts:
            words += self._drawn(part.key, min(part.tokens, most - len(words)))
        return words

    def _drawn(self, key: str, tokens: int) -> list[str]:
        return Random(f"{self._seed}/{key}").choices(self._words, k=max(tokens, 0))  # noqa: S311 - as above


def as_prompt(text: str, *, chat: bool) -> Prompt:
    """Return a text as engines count it: the one message of a chat, or plain."""
    return ChatPrompt([{"role": "user", "content": text}]) if chat else TextPrompt(text)
