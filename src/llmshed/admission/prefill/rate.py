"""The prefill rate of an engine as its first tokens show it."""

import math

from llmshed.admission.release import UNKNOWN_PREFILL_TOKENS_PER_SECOND

MEMORY_SECONDS = 10.0
"""Busy seconds after which a sample counts for a third: tens of prompts, so that one odd one moves little."""
PRIOR_SECONDS = 1.0
"""Busy seconds that the profile's rate counts for at the start."""
LEAST_RATIO = 0.25
"""Least of the profile's rate, or of the assumed one: below it the signal is wrong, and that may not stop admission."""
MOST_RATIO = 4.0
"""Most of the profile's rate, likewise; where none is known the rate may be found as high as it is."""


class MeasuredRate:
    """Prompt tokens a second: the tokens of recent samples by their seconds.

    Sums, not a mean of rates: prompts of one engine step get their first tokens together, and the rate of the second
    would be infinite.

    Attributes:
        tokens_per_second: the rate, within its bounds; a decision reads it several times for each replica.
    """

    __slots__ = ("_least", "_most", "_seconds", "_tokens", "tokens_per_second")

    def __init__(self, profile_tokens_per_second: float | None) -> None:
        """Start with the profile's rate, or the one that is assumed where none is known."""
        self._seconds = PRIOR_SECONDS
        self._tokens = (profile_tokens_per_second or UNKNOWN_PREFILL_TOKENS_PER_SECOND) * PRIOR_SECONDS
        self._least = self._most = 0.0
        self.renew(profile_tokens_per_second)

    def learn(self, tokens: int, seconds: float, inflight_tokens: int) -> None:
        """Count a prompt that the engine worked on for so long with that many tokens in flight, its own included.

        Its step may have held all of them. Longer than these take at the least rate is a stall and no prefill: were it
        counted whole, the rate would stay at its bound long after it.
        """
        seconds = min(seconds, inflight_tokens / self._least)
        kept = math.exp(-seconds / MEMORY_SECONDS)
        self._tokens = self._tokens * kept + tokens
        self._seconds = self._seconds * kept + seconds
        self._bound()

    def renew(self, profile_tokens_per_second: float | None) -> None:
        """Take the bounds from another profile; what was measured stays, within them."""
        self._least = LEAST_RATIO * (profile_tokens_per_second or UNKNOWN_PREFILL_TOKENS_PER_SECOND)
        self._most = float("inf") if profile_tokens_per_second is None else MOST_RATIO * profile_tokens_per_second
        self._bound()

    def _bound(self) -> None:
        self.tokens_per_second = min(max(self._tokens / self._seconds, self._least), self._most)
