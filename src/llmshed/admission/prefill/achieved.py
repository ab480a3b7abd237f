"""The part of the prefill that bulk really got, for the metric beside its cap and its floor."""

import math

MEMORY_SECONDS = 60.0
"""After which a prompt counts for a third: the metric follows the last minute."""


class AchievedShare:
    """Tokens of prompts let in lately, all and bulk's, decaying."""

    __slots__ = ("_all_tokens", "_at", "_bulk_tokens")

    def __init__(self, now: float) -> None:
        """Start with none."""
        self._at = now
        self._all_tokens = 0.0
        self._bulk_tokens = 0.0

    def count(self, tokens: int, now: float, *, bulk: bool) -> None:
        """Count a prompt; with fewer than 0 tokens, one that was given back."""
        kept = math.exp((self._at - now) / MEMORY_SECONDS)
        self._at = now
        self._all_tokens = max(0.0, self._all_tokens * kept + tokens)
        self._bulk_tokens = max(0.0, self._bulk_tokens * kept + tokens * bulk)

    def ratio(self, now: float) -> float | None:
        """Return bulk's part in 0..1; None when next to nothing was let in."""
        if self._all_tokens * math.exp((self._at - now) / MEMORY_SECONDS) < 1.0:
            return None
        return min(1.0, self._bulk_tokens / self._all_tokens)
