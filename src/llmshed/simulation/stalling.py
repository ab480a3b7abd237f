"""A simulated engine that hangs for a while."""

from math import inf


class Stalling:
    """Until when no step ends, and none begins."""

    def __init__(self) -> None:
        """Start without a stall."""
        self._until = -inf

    def begin(self, now: float, seconds: float) -> None:
        """Stall for `seconds` from `now`, infinity until `end`; an earlier stall that lasts longer goes on."""
        self._until = max(self._until, now + seconds)

    def end(self, now: float) -> None:
        """End a stall; what was due while it lasted happens at `now`."""
        self._until = min(self._until, now)

    def earliest(self, due: float | None) -> float | None:
        """Return when something happens that is due at a time; None when nothing is due or the stall has no end."""
        if due is None:
            return None
        at = max(due, self._until)
        return None if at == inf else at

    def is_over(self, now: float) -> bool:
        """Say whether nothing is held up at `now`."""
        return self._until <= now
