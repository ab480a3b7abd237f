"""The prefill rate of an engine as its first tokens show it."""

import math

from llmshed.admission.release import UNKNOWN_PREFILL_TOKENS_PER_SECOND

MEMORY_SECONDS = 10.0
"""Busy seconds after which a sample counts for a third: tens of prompts, so that one odd one moves little."""
PRIOR_SECONDS = 1.0
"""Busy seconds that the profile's rate counts for at the start."""
LEAST_RATIO = 0.25
MOST_RATIO = 4.0
"""Bounds by the profile's rate: beyond them the profile is wrong or the signal is, and neither may stop admission."""


class MeasuredRate:
    """Prompt tokens a second: the tokens of recent samples by their seconds.

    Sums, not a mean of rates: prompts of one engine step get their first tokens together, and the rate of the second
    would be infinite.
    """

    __slots__ = ("_profile", "_seconds", "_tokens")

    def __init__(self, profile_tokens_per_second: float | None) -> None:
        """Start with the profile's rate, or the one that is assumed where none is known."""
        self._profile = profile_tokens_per_second
        self._seconds = PRIOR_SECONDS
        self._tokens = (profile_tokens_per_second or UNKNOWN_PREFILL_TOKENS_PER_SECOND) * PRIOR_SECONDS

    @property
    def tokens_per_second(self) -> float:
        """Return the rate, within its bounds where a profile gives them."""
        measured = self._tokens / self._seconds
        if self._profile is None:
            return measured
        return min(max(measured, LEAST_RATIO * self._profile), MOST_RATIO * self._profile)

    def learn(self, tokens: int, seconds: float) -> None:
        """Count a prompt that the engine worked on for so long."""
        if self._profile is not None:
            # A stall is no prefill: were it counted whole, the estimate would stay at its bound long after it.
            seconds = min(seconds, tokens / (LEAST_RATIO * self._profile))
        kept = math.exp(-seconds / MEMORY_SECONDS)
        self._tokens = self._tokens * kept + tokens
        self._seconds = self._seconds * kept + seconds

    def renew(self, profile_tokens_per_second: float | None) -> None:
        """Take another profile's rate; what was measured stays, within the new bounds."""
        self._profile = profile_tokens_per_second
