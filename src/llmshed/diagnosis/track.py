"""One signal over time, on a grid of equal steps; a gap is a NaN."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Track:
    """The values of one signal.

    Args:
        start: time of the first value, in seconds since the epoch.
        step_seconds: time between two values, above 0.
        values: the values; NaN where there was none. An infinite one counts as none.
    """

    start: float
    step_seconds: float
    values: tuple[float, ...]

    @classmethod
    def of(cls, start: float, end: float, step_seconds: float, points: Sequence[tuple[float, float]]) -> "Track":
        """Lay points on the grid from `start` to `end`; the last of those that fall on one step counts."""
        values = [math.nan] * (int((end - start) / step_seconds + 1e-6) + 1)
        for at, value in points:
            place = round((at - start) / step_seconds)
            if 0 <= place < len(values) and math.isfinite(value):
                values[place] = value
        return cls(start, step_seconds, tuple(values))

    def at(self, place: int) -> float:
        """Return the time of a value."""
        return self.start + place * self.step_seconds

    @property
    def known(self) -> tuple[float, ...]:
        """Return the values that there are."""
        return tuple(value for value in self.values if not math.isnan(value))

    @property
    def middle(self) -> float | None:
        """Return the median; None without any value."""
        known = self.known
        return median(known) if known else None

    @property
    def last(self) -> float | None:
        """Return the newest value; None without any."""
        known = self.known
        return known[-1] if known else None

    def between(self, since: float, until: float) -> "Track":
        """Return the values from `since` to before `until`."""
        first = max(0, math.ceil((since - self.start) / self.step_seconds - 1e-6))
        after = max(first, math.ceil((until - self.start) / self.step_seconds - 1e-6))
        return Track(self.at(first), self.step_seconds, self.values[first:after])

    def where(self, holds: Sequence[bool]) -> "Track":
        """Return the track with gaps wherever `holds`, as long as it, is False."""
        kept = (value if keep else math.nan for value, keep in zip(self.values, holds, strict=True))
        return Track(self.start, self.step_seconds, tuple(kept))

    def with_values(self, change: Callable[[float], float]) -> "Track":
        """Return the track with each value changed; gaps stay."""
        return Track(self.start, self.step_seconds, tuple(v if math.isnan(v) else change(v) for v in self.values))
