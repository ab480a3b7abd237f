"""The longest stretch in which work waited and none of it began: what starvation looks like from outside."""


class Gap:
    """Follows who waits for a first token, and when the last one came."""

    __slots__ = ("_longest", "_since", "_waiting")

    def __init__(self) -> None:
        self._waiting = 0
        self._since = 0.0
        self._longest = 0.0

    def begin_wait(self, now: float) -> None:
        """Note one more that waits."""
        if self._waiting == 0:
            self._since = now
        self._waiting += 1

    def start(self, now: float) -> None:
        """Note that one of those that wait got its first token."""
        self._measure(now)
        self._since = now
        self._waiting -= 1

    def end_wait(self, now: float) -> None:
        """Note that one of those that wait was refused, or failed."""
        self._measure(now)
        self._waiting -= 1

    def longest_seconds(self, now: float) -> float:
        """Return the longest stretch so far, the one that lasts included."""
        return max(self._longest, now - self._since) if self._waiting else self._longest

    def _measure(self, now: float) -> None:
        self._longest = max(self._longest, now - self._since)
