"""How long a step and a prompt should take on a replica that is as it was measured.

With n sequences that decode and K tokens in the KV cache, of the decode curve d, the time D of a token at the gross
ceiling G, and the fixed prompt of P tokens whose first token came after F seconds on the idle replica:

    least step       d(n)                             short contexts, as the curve was measured
    greatest step    d(n) + min(1, K/G) (D - d(n))    contexts that fill the ceiling, as D was measured
    first token      (3/2 if n else 1) d(n) + (F - d(1)) L / P

The first token of a prompt of L tokens comes after the prompt's own time, which grows with its length, and one step,
before which half of a running one passes in the mean.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from llmshed.profile.model import Profile

LEAST_STEPS = 3.0
"""A prompt whose own time is below this many steps shows more of the steps than of itself."""


@dataclass(frozen=True, slots=True)
class ExpectedSteps:
    """Seconds of a decode step, from a profile.

    Args:
        curve: sequences and seconds for each, ascending and not empty.
        ceiling_seconds: seconds at the gross ceiling.
        ceiling_tokens: that ceiling.
    """

    curve: tuple[tuple[int, float], ...]
    ceiling_seconds: float
    ceiling_tokens: int

    @classmethod
    def of(cls, profile: Profile) -> Self | None:
        """Read a profile; None when it does not tell how long a step takes by the number of sequences."""
        if profile.decode is None or not profile.decode.curve:
            return None
        curve = tuple((point.sequences, point.seconds_per_token) for point in profile.decode.curve)
        return cls(curve, profile.decode.seconds_per_token, profile.budget.gross_ceiling_tokens)

    def least_seconds(self, sequences: int) -> float:
        """Return the curve at a number of sequences: on a line between two points, at the nearest one beyond them."""
        if sequences <= self.curve[0][0]:
            return self.curve[0][1]
        for (low, low_seconds), (high, high_seconds) in pairwise(self.curve):
            if sequences <= high:
                return low_seconds + (high_seconds - low_seconds) * (sequences - low) / (high - low)
        return self.curve[-1][1]

    def greatest_seconds(self, sequences: int, kv_tokens: float) -> float:
        """Return the longest step that so many tokens in the cache explain."""
        least = self.least_seconds(sequences)
        return least + min(1.0, kv_tokens / self.ceiling_tokens) * max(0.0, self.ceiling_seconds - least)

    def ratio(self, seconds: float, sequences: int, kv_tokens: float) -> float:
        """Return how many times too long a step is: 1 between least and greatest."""
        least, greatest = self.least_seconds(sequences), self.greatest_seconds(sequences, kv_tokens)
        return seconds / min(max(seconds, least), greatest)


@dataclass(frozen=True, slots=True)
class ExpectedPrompts:
    """Seconds to the first token of a prompt that no other is processed beside.

    Args:
        steps: the decode steps around it.
        seconds_per_token: a prompt token's own time.
    """

    steps: ExpectedSteps
    seconds_per_token: float

    @classmethod
    def of(cls, profile: Profile) -> Self | None:
        """Read a profile; None when it does not tell the time of the fixed prompt, or of steps."""
        steps, behaviour = ExpectedSteps.of(profile), profile.fingerprint.behaviour
        seconds, tokens = behaviour.fixed_prompt_prefill_seconds, behaviour.fixed_prompt_tokens
        if steps is None or seconds is None or tokens is None:
            return None
        own_seconds = seconds - (behaviour.decode_step_seconds or steps.least_seconds(1))
        return cls(steps, own_seconds / tokens) if own_seconds > 0 else None

    def ratio(self, seconds: float, prompt_tokens: int, sequences: int) -> float | None:
        """Return how many times too long a first token took beside so many sequences; None where it would not show.

        Never below 1: what an engine still has of a prompt in its cache makes it fast, and nobody slow.
        """
        step, own = self.steps.least_seconds(sequences), self.seconds_per_token * prompt_tokens
        if own < LEAST_STEPS * step:
            return None
        return max(1.0, seconds / (own + (1.5 if sequences else 1.0) * step))
