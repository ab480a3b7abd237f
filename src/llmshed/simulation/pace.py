"""How many tokens a decoding sequence gets in a number of decode steps."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """One token a step, and with speculation a share of guessed ones more.

    After j steps a sequence has `j + floor(j x accepted)` tokens, so that the count follows from j alone and no step
    has to be gone through.

    Args:
        accepted: guessed tokens that a step adds in the mean; 0 without speculation.
    """

    accepted: float = 0.0

    def tokens(self, steps: int) -> int:
        """Return the tokens that `steps` decode steps produce."""
        return steps + int(steps * self.accepted)

    def steps(self, tokens: int) -> int:
        """Return the least steps that produce at least `tokens`."""
        steps = max(int(tokens / (1 + self.accepted)) - 1, 0)
        while self.tokens(steps) < tokens:
            steps += 1
        return steps
