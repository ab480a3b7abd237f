"""How things stood over time, at even steps, in bounded memory whatever the length of the run."""

from llmshed.whatif.report import TimePoint

MOST_POINTS = 240
"""When so many are kept, every other one is dropped and the step doubled: what is left stays even."""


class Timeline:
    """Keeps points that come at even steps."""

    def __init__(self) -> None:
        """Start with none."""
        self._points: list[TimePoint] = []
        self._step = 1
        self._looks = 0

    def add(self, point: TimePoint) -> None:
        """Take the next point; only each `_step`-th is kept."""
        if self._looks % self._step == 0:
            self._points.append(point)
            if len(self._points) == MOST_POINTS:
                self._points = self._points[::2]
                self._step *= 2
        self._looks += 1

    def points(self) -> tuple[TimePoint, ...]:
        """Return what was kept, in order."""
        return tuple(self._points)
