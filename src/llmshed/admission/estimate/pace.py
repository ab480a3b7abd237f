"""How fast a replica decodes one sequence, learnt from the streams that ended."""

from llmshed.admission.policy import ReplicaBudget
from llmshed.admission.release import UNKNOWN_DECODE_SECONDS_PER_TOKEN

LEARNING_RATIO = 1.0 / 32.0
"""Part of what is known that one further stream replaces: a change of batch shows within a few dozen answers."""
LEAST_RATIO = 0.25
MOST_RATIO = 4.0
"""Bounds of the pace against the budget's figure: neither an engine that stalls nor a proxy that bursts shall rule the
forecast, and from one sequence to a full batch a decode step grows by no more than that."""


class DecodePace:
    """Seconds per output token of one sequence on one replica, weighed by tokens.

    Seconds and tokens are smoothed apart, so that a long answer tells more than one of three tokens.
    """

    __slots__ = ("_seconds", "_tokens")

    def __init__(self) -> None:
        """Know nothing but the budget's figure."""
        self._seconds = 0.0
        self._tokens = 0.0

    def learn(self, seconds: float, tokens: int) -> None:
        """Take in a stream that ended: from its first token to its end, and its output tokens of one sequence.

        One token shows no gap, so it tells nothing.
        """
        if tokens < 2:
            return
        self._seconds += LEARNING_RATIO * (seconds - self._seconds)
        self._tokens += LEARNING_RATIO * (tokens - 1 - self._tokens)

    def seconds_per_token(self, budget: ReplicaBudget) -> float:
        """Return the pace; until a stream ended it is the budget's, and always within 0.25 and 4 times that."""
        told = budget.decode_seconds_per_token or UNKNOWN_DECODE_SECONDS_PER_TOKEN
        if self._tokens == 0.0:
            return told
        return min(max(self._seconds / self._tokens, LEAST_RATIO * told), MOST_RATIO * told)
