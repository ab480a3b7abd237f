"""What a window says to the rung by rule and to the next one: above, calm, or neither."""

import math

from llmshed.ladder.model import EntrySignal, Ladder, Rung
from llmshed.ladder.reading import PoolReading
from llmshed.ladder.windows import DelayBounds, DelayWindow


class Judge:
    """The bounds that a window is held against while one rung is in force by rule.

    Args:
        ladder: the ladder.
        by_rule: number of the rung in force by rule, 0 for none.
        objective_seconds: queue delay objective.
    """

    __slots__ = ("_current", "_objective", "_patience", "following")

    def __init__(self, ladder: Ladder, by_rule: int, objective_seconds: float) -> None:
        self._objective = objective_seconds
        self._current = ladder.rungs[by_rule - 1] if by_rule else None
        self.following = ladder.rungs[by_rule] if by_rule < len(ladder.rungs) else None
        self._patience = self._delay_bound(self._current, objective_seconds)

    def delay_bounds(self) -> DelayBounds:
        """Return what the window counts against."""
        ratio = self._current.exit.below_ratio if self._current else math.inf
        return DelayBounds(self._objective, self._delay_bound(self.following, math.inf), ratio * self._patience)

    def above(self, window: DelayWindow, reading: PoolReading) -> bool:
        """Say whether the next rung's entry is met; a signal that is not told is not above anything."""
        rung = self.following
        if rung is None:
            return False
        if rung.entry.signal is EntrySignal.QUEUE_DELAY:
            return window.above_entry()
        value = reading.value(rung.entry.signal)
        return value is not None and value > self._bound(rung)

    def calm(self, window: DelayWindow, reading: PoolReading) -> bool:
        """Say whether the exit of the rung by rule is met; where its own signal is not told, by the queue delay."""
        rung = self._current
        if rung is None:
            return False
        value = reading.value(rung.entry.signal)
        if value is None:
            return window.below_exit(self._patience)
        return value < rung.exit.below_ratio * self._bound(rung)

    def _bound(self, rung: Rung) -> float:
        return self._objective if rung.entry.above is None else rung.entry.above

    def _delay_bound(self, rung: Rung | None, otherwise: float) -> float:
        """Return a rung's bound of the queue delay, or something else where it is not entered by that."""
        return self._bound(rung) if rung and rung.entry.signal is EntrySignal.QUEUE_DELAY else otherwise
