"""The room that refused callers were told to come back for, so that not all of them come for the same one.

Each refusal with a Retry-After books its tokens with its rank, reserved and prompt tokens apart. What is booked drains
by time, at the rate at which such tokens come free for the rank: the promise is that the work ahead has drained, not
that its caller took the room. The rate is a mean over the last tens of seconds, begun at that of a full pool: for
reserved tokens by Little's law its safe budgets over the mean time that a request holds its tokens, for prompt tokens
what its engines prefill. It is never below a part of that, since a pool without work releases nothing and could.
"""

from math import exp

RATE_SECONDS = 30.0
"""Time constant of the release rate: a few answers of ordinary length."""
LEAST_RATE_RATIO = 0.1
"""Least part of the full pool's rate that is believed."""
MOST_PROMISED_SECONDS = 60.0
"""Longest wait that promises add. A caller that is told more than this is told not to come back by itself, so nobody
comes for what is booked beyond it; and whatever was promised is forgotten a minute after the last refusal."""


class PromisedWork:
    """The promised work of one rank in one pool, in tokens of one kind."""

    __slots__ = ("_at", "_forget_at", "_full_rate", "_promised_tokens", "_released_rate", "_unseen_ratio")

    def __init__(self) -> None:
        """Promise nothing."""
        self._at: float | None = None
        self._promised_tokens = 0.0
        self._forget_at = 0.0
        self._full_rate = 0.0
        self._released_rate = 0.0
        self._unseen_ratio = 1.0  # weight that the full pool's rate still has in the mean

    def released(self, tokens: float, now: float) -> None:
        """Note tokens that came free for this rank: of all, the part that higher ranks leave."""
        self._advance(now)
        self._released_rate += tokens / RATE_SECONDS

    def idled(self, now: float) -> None:
        """Note that there was room since the last note: what is promised drained at the full pool's rate at least.

        Nothing was released since nothing ran, which says nothing of the rate.
        """
        at = self._at
        if at is not None and now <= at:
            return
        self._at = now
        if at is not None and self._promised_tokens > 0.0:
            self._promised_tokens = max(0.0, self._promised_tokens - (now - at) * max(self._rate(), self._full_rate))

    def book(self, tokens: int, full_tokens_per_second: float, now: float) -> None:
        """Promise that many tokens to a caller that is refused now.

        `full_tokens_per_second` (> 0) is the rate at which the pool would release while it is full.
        """
        self._advance(now)
        self._full_rate = full_tokens_per_second
        self._promised_tokens = min(self._promised_tokens + tokens, MOST_PROMISED_SECONDS * self._rate())
        self._forget_at = now + MOST_PROMISED_SECONDS

    def seconds(self, now: float) -> float:
        """Return how long what is promised takes to drain, at most 60 s; 0 when nothing is."""
        self._advance(now)
        if self._promised_tokens <= 0.0:
            return 0.0
        return min(self._promised_tokens / self._rate(), MOST_PROMISED_SECONDS)

    def _rate(self) -> float:
        known = self._released_rate + self._unseen_ratio * self._full_rate
        return max(known, LEAST_RATE_RATIO * self._full_rate)

    def _advance(self, now: float) -> None:
        """Drain at the rate as it was, and let the rate's past fade."""
        if now >= self._forget_at:  # by its rate it drains for minutes where a pool stopped releasing
            self._promised_tokens = 0.0
        at = self._at
        if at is None:
            self._at = at = now
        elapsed = now - at
        if elapsed <= 0.0:
            return
        self._at = now
        if self._promised_tokens > 0.0:
            self._promised_tokens = max(0.0, self._promised_tokens - elapsed * self._rate())
        kept = exp(-elapsed / RATE_SECONDS)
        self._released_rate *= kept
        self._unseen_ratio *= kept
