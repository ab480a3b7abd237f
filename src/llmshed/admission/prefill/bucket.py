"""A token bucket with debt."""


class DebtBucket:
    """Tokens that come at a rate: what is there may be overdrawn, and nothing goes until that is paid off.

    It keeps one instant, at which the level is zero, and the level is what the rate brought since. So the instant at
    which the debt is paid off is exact, whatever the rate.

    Args:
        tokens_per_second: more than 0.
        span_seconds: how many seconds of the rate the level holds at most.
        now: it starts full.
    """

    __slots__ = ("paid_at", "span_seconds", "tokens_per_second")

    def __init__(self, tokens_per_second: float, span_seconds: float, now: float) -> None:
        """Start full."""
        self.tokens_per_second = tokens_per_second
        self.span_seconds = span_seconds
        self.paid_at = now - span_seconds

    def level(self, now: float) -> float:
        """Return the tokens that are there, negative while there is a debt."""
        return min(now - self.paid_at, self.span_seconds) * self.tokens_per_second

    def open(self, now: float) -> bool:
        """Say whether there is no debt."""
        return now >= self.paid_at

    def take(self, tokens: float, now: float) -> None:
        """Take tokens, more than there are if need be."""
        self.paid_at = max(self.paid_at, now - self.span_seconds) + tokens / self.tokens_per_second

    def give_back(self, tokens: float) -> None:
        """Give back tokens that were taken; more than the level holds are lost."""
        self.paid_at -= tokens / self.tokens_per_second

    def forget(self, now: float) -> None:
        """Lose what is there; a debt stays."""
        self.paid_at = max(self.paid_at, now)

    def renew(self, tokens_per_second: float, now: float) -> None:
        """Go on at another rate with the same tokens, as many of them as the level then holds."""
        self.paid_at = now - self.level(now) / tokens_per_second
        self.tokens_per_second = tokens_per_second

    def seconds_until(self, tokens: float, now: float) -> float:
        """Return how long until that many tokens were brought beyond the debt; 0 when they are there."""
        return max(0.0, tokens - self.level(now)) / self.tokens_per_second
