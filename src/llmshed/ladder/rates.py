"""How many reserved tokens a second a pool serves, as far as it was seen at its bound."""

from collections import deque

_WINDOWS = 8
"""One window's rate swings with single long requests; eight of them are minutes, and no older day of the same pool."""


class ServiceRate:
    """The mean rate of the last windows under pressure; at ease, what is let in is demand and says nothing of it.

    A window counts only while no more replicas were lost in it than now: what fewer replicas served is too little.
    """

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque(maxlen=_WINDOWS)

    def saw(self, tokens_per_second: float, replicas_lost: int) -> None:
        """Take in a window under pressure."""
        self._seen.append((tokens_per_second, replicas_lost))

    def forget(self) -> None:
        """Drop what was seen: it proved to be of another time."""
        self._seen.clear()

    def tokens_per_second(self, replicas_lost: int) -> float | None:
        """Return the rate with so many replicas lost; None where it was never seen."""
        rates = [rate for rate, lost in self._seen if lost <= replicas_lost]
        return sum(rates) / len(rates) if rates else None
