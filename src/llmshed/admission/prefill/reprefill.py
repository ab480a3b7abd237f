"""The prompts that an engine makes for itself: TGI from 3.1.1 runs a long output in pieces.

After each 1,024 output tokens it puts the sequence at the tail of its queue, and prefills the input and what it
produced again. Nobody asks here before it does, so what is expected is taken when it is due: k pieces after the first
token at k x 1,024 x the decode time of a token. Whether its prefix cache would spare a part is not known, and not
counted on.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

MOST_AT_ONCE = 64
"""Re-prefills taken in one call; the rest follow in the next, so that a call after a quiet minute is no longer."""


@dataclass(slots=True)
class Generation:
    """A sequence that decodes, up to its next re-prefill.

    Args:
        input_tokens: tokens of its prompt.
        output_ceiling_tokens: most output.
        piece_seconds: time of one piece.
        produced_tokens: output at the next re-prefill.
        over: whether it ended or comes no more; an entry in the heap then means nothing.
    """

    input_tokens: int
    output_ceiling_tokens: int
    piece_seconds: float
    produced_tokens: int
    over: bool = False

    @property
    def tokens(self) -> int:
        """Return the tokens of the next re-prefill."""
        return self.input_tokens + self.produced_tokens

    @property
    def tokens_per_second(self) -> float:
        """Return the rate that the next re-prefill comes to over its piece."""
        return self.tokens / self.piece_seconds


class Reprefills:
    """The re-prefills that are to come on one replica.

    Args:
        piece_tokens: output after which the engine prefills again; 0 when it never does.
    """

    __slots__ = ("_count", "_due", "_live", "_piece_tokens", "tokens_per_second")

    def __init__(self, piece_tokens: int) -> None:
        """Start with none."""
        self._piece_tokens = piece_tokens
        self._live: dict[int, Generation] = {}
        self._due: list[tuple[float, int, Generation]] = []
        self._count = 0  # breaks ties in the heap
        self.tokens_per_second = 0.0

    def start(self, key: int, tokens: int, output_ceiling_tokens: int, seconds_per_token: float, at: float) -> None:
        """Expect the re-prefills of a sequence whose first token came; none for an output of one piece."""
        if 0 < self._piece_tokens < output_ceiling_tokens:
            seconds = self._piece_tokens * seconds_per_token
            generation = Generation(tokens, output_ceiling_tokens, seconds, self._piece_tokens)
            self._live[key] = generation
            self.tokens_per_second += generation.tokens_per_second
            self._push(generation, at + seconds)

    def stop(self, key: int) -> None:
        """Expect no more of a sequence; unknown keys are ignored."""
        generation = self._live.pop(key, None)
        if generation is not None and not generation.over:
            generation.over = True
            self._forget(generation)

    def next_due(self) -> float:
        """Return when the next one may be due; infinity where none is expected."""
        return self._due[0][0] if self._due else float("inf")

    def take_due(self, now: float) -> Iterator[tuple[float, int]]:
        """Yield the instant and the tokens of what is due, earliest first, at most `MOST_AT_ONCE`."""
        for _ in range(MOST_AT_ONCE):
            if self.next_due() > now:
                return
            at, _, generation = heappop(self._due)
            if generation.over:
                continue
            yield at, generation.tokens
            self._forget(generation)
            generation.produced_tokens += self._piece_tokens
            if generation.produced_tokens < generation.output_ceiling_tokens:
                self.tokens_per_second += generation.tokens_per_second
                self._push(generation, at + generation.piece_seconds)
            else:
                generation.over = True

    def check(self) -> list[str]:
        """Return the invariants that do not hold: the rate equals the recount."""
        rate = sum(g.tokens_per_second for g in self._live.values() if not g.over)
        if abs(rate - self.tokens_per_second) > 1e-6 * (1.0 + rate):
            return [f"re-prefills come at {self.tokens_per_second} tokens/s, the sequences sum to {rate}"]
        return []

    def _push(self, generation: Generation, at: float) -> None:
        self._count += 1
        heappush(self._due, (at, self._count, generation))

    def _forget(self, generation: Generation) -> None:
        self.tokens_per_second -= generation.tokens_per_second
