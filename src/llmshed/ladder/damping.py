"""Damped re-entry: who comes back too early goes back more slowly the next time.

A pool that sheds looks calm because it sheds, so a step back that brings the pressure back is no recovery. Each early
re-entry doubles the windows that the next steps back take; once the ladder was left for as long as a re-entry counts as
early, all is forgotten.
"""

from llmshed.ladder.model import Rung, Windowing

_MOST_DOUBLINGS = 11
"""2^11 exceeds the longest step back that a ladder can ask for, 1,440 windows."""


class Damping:
    """How often the pool came back early."""

    __slots__ = ("_doublings", "_since_back")

    def __init__(self) -> None:
        self._doublings = 0
        self._since_back: int | None = None  # windows since a step back after which nothing was climbed yet

    def exit_windows(self, rung: Rung, windows: Windowing) -> int:
        """Return the calm windows in a row that a step back from a rung takes."""
        return min(rung.exit.windows << self._doublings, windows.most_exit_windows)

    def went_back(self) -> None:
        """Note a step back, at the end of a window."""
        self._since_back = 0

    def climbed(self, windows: Windowing) -> None:
        """Note a climb; the first one after a step back is an early re-entry within the windows for that."""
        if self._since_back is not None and self._since_back <= windows.reentry_windows:
            self._doublings = min(self._doublings + 1, _MOST_DOUBLINGS)
        self._since_back = None

    def window_ended(self, windows: Windowing, *, on_ground: bool) -> None:
        """Note that a window ended, before what it leads to; on the ground for long enough, all is forgotten."""
        if self._since_back is not None:
            self._since_back += 1
            if on_ground and self._since_back > windows.reentry_windows:
                self._doublings, self._since_back = 0, None
