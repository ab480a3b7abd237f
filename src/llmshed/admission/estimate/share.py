"""Which part of the tokens that come free each rank of service takes, so that lower ranks expect only what is left.

A dispatch counts as taking from what came free and was not taken again yet; what it takes of the room that was free all
along, as while an idle replica fills, is nobody's share. Sums fade with a time constant, and few releases prove little:
the share that was seen counts by n / (n + `PRIOR_RELEASES`) for n releases.
"""

from itertools import accumulate
from math import exp

from llmshed.admission.request import SERVICE_RANKS

MEMORY_SECONDS = 20.0
"""Time constant of the sums: the mix of classes shifts within tens of seconds at the start of a burst."""
PRIOR_RELEASES = 10.0
"""How many releases weigh as much as the belief that everything that comes free is left."""
LEAST_SHARE = 0.02
"""What a rank may always expect: an estimate of 50 times the release time refuses whatever has a bound of its own."""


class ReleaseShares:
    """The shares of one pool."""

    __slots__ = ("_at", "_free_tokens", "_released_tokens", "_releases", "_taken_tokens")

    def __init__(self) -> None:
        """Start with everything left for everybody."""
        self._at: float | None = None
        self._releases = 0.0
        self._released_tokens = 0.0
        self._free_tokens = 0.0  # of the released ones, those that nobody took again
        self._taken_tokens = [0.0] * SERVICE_RANKS

    def released(self, tokens: int, now: float) -> None:
        """Note reserved tokens that came free."""
        self._fade(now)
        self._releases += 1.0
        self._released_tokens += tokens
        self._free_tokens += tokens

    def took(self, rank: int, tokens: int, now: float) -> None:
        """Note a dispatch of that rank and the tokens that it reserved."""
        self._fade(now)
        of_released = min(tokens, self._free_tokens)
        self._free_tokens -= of_released
        self._taken_tokens[rank] += of_released

    def left_for(self, rank: int, now: float) -> float:
        """Return the part of what comes free that higher ranks leave to this one: 1 for the highest, at least 0.02."""
        self._fade(now)
        return self._left(sum(self._taken_tokens[:rank]))

    def left(self, now: float) -> list[float]:
        """Return the part that is left for each rank."""
        self._fade(now)
        return [self._left(tokens) for tokens in accumulate(self._taken_tokens[:-1], initial=0.0)]

    def _left(self, taken_tokens: float) -> float:
        """Return what is left beside the tokens that higher ranks took."""
        if self._released_tokens <= 0.0:
            return 1.0
        taken = taken_tokens / self._released_tokens
        return max(LEAST_SHARE, 1.0 - taken * self._releases / (self._releases + PRIOR_RELEASES))

    def _fade(self, now: float) -> None:
        if self._at is None:
            self._at = now
        if now <= self._at:
            return
        kept = exp((self._at - now) / MEMORY_SECONDS)
        self._at = now
        self._releases *= kept
        self._released_tokens *= kept
        self._free_tokens *= kept
        self._taken_tokens = [tokens * kept for tokens in self._taken_tokens]
