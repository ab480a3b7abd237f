"""Made-up output: words of the vocabulary, the same for the same seed and prompt."""

import hashlib
import random

from llmshed.emulator.vocabulary import Piece, Vocabulary
from llmshed.simulation.sequences import FinishReason, NaturalEnd

_LEAST_WORDS = 4
_MARK_SHARE = 0.12


def made_up_logprob(index: int) -> float:
    """Return a log probability for token `index` of a text, from 1: always the same."""
    return -round((index * 0.618_033_988 % 1) * 2 + 0.01, 4)


class Script:
    """The output of one sequence, written as far as it is read.

    Token n (from 1) has the piece `piece(n)`; the end token stands at `natural_end`. Behind the end it goes on, since
    TGI never reads there.
    """

    def __init__(self, vocabulary: Vocabulary, draws: random.Random, natural_end: NaturalEnd | None) -> None:
        """Begin a free text."""
        self._vocabulary = vocabulary
        self._draws = draws
        self._pieces: list[Piece] = []
        self._since_mark = 0
        self.natural_end = natural_end

    def piece(self, index: int) -> Piece:
        """Return the piece of token `index`, from 1."""
        end = self.natural_end
        if end is not None and end.reason is FinishReason.EOS and index == end.after_tokens:
            return self._vocabulary.end
        while len(self._pieces) < index:
            self._pieces.append(self._next())
        return self._pieces[index - 1]

    def text(self, tokens: int) -> str:
        """Return the text of the first tokens; special ones add nothing."""
        pieces = (self.piece(index) for index in range(1, tokens + 1))
        return "".join(piece.text for piece in pieces if not piece.special)

    def stop_at(self, stops: list[str], most_tokens: int) -> None:
        """Move the natural end to where the text first ends with one of the stop texts (TGI keeps it in the text)."""
        end = self.natural_end
        limit = most_tokens if end is None else min(most_tokens, end.after_tokens - 1)
        longest = max(len(stop) for stop in stops)
        tail = ""
        for index in range(1, limit + 1):
            tail = (tail + self.piece(index).text)[-longest - 64 :]
            if any(stop and tail.endswith(stop) for stop in stops):
                self.natural_end = NaturalEnd(index, FinishReason.STOP)
                return

    def spell(self, text: str) -> None:
        """Write this text instead, then end."""
        self._pieces = self._vocabulary.spell(text)
        self.natural_end = NaturalEnd(len(self._pieces) + 1, FinishReason.EOS)

    def _next(self) -> Piece:
        self._since_mark += 1
        if self._since_mark > _LEAST_WORDS and self._draws.random() < _MARK_SHARE:
            self._since_mark = 0
            return self._vocabulary.full_stop if self._draws.random() < 0.5 else self._vocabulary.comma
        return self._draws.choice(self._vocabulary.words)


class Writer:
    """Writes scripts."""

    def __init__(self, vocabulary: Vocabulary, seed: int, output_mean_tokens: float | None) -> None:
        """Take the words, the seed, and the mean natural length; None for no natural end."""
        self._vocabulary = vocabulary
        self._seed = seed
        self._mean = output_mean_tokens

    def script(self, prompt: str, seed: int | None, copy: int = 0) -> Script:
        """Begin the output for a prompt; the request's seed and the number of the copy change it."""
        names = f"{self._seed}/{seed}/{copy}/".encode()
        digest = hashlib.blake2b(names + prompt.encode(errors="surrogatepass"), digest_size=16).digest()
        draws = random.Random(digest)  # noqa: S311 - words of a made-up text, no secret
        if self._mean is None:
            return Script(self._vocabulary, draws, None)
        # Exponential, as is roughly what chats show: many short answers, a long tail; the end token is counted.
        length = 1 + round(draws.expovariate(1 / self._mean))
        return Script(self._vocabulary, draws, NaturalEnd(length, FinishReason.EOS))
