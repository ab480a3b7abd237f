"""What the signals say of an incident: when it was, and how each signal stood in it and before it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from llmshed.diagnosis.departure import STEPS_IN_A_ROW, Departure, departure_of
from llmshed.diagnosis.signals import SIGNALS
from llmshed.diagnosis.track import Track

MISSED_RATIO = 0.05
"""Of the interactive requests: more than that misses its objectives in a step of an incident."""
LEAST_MISSED = 3.0
"""Requests within the range of a rate: one that is late of seven that came is no overload. A gap is no trouble."""
REFUSED_RATIO = 0.05
"""Of the interactive first arrivals, refused, where nothing tells of missed objectives."""
LEAST_BEFORE = 5
"""Steps without trouble that a comparison needs."""
_BY_NAME = {signal.name: signal for signal in SIGNALS}


@dataclass(frozen=True)
class Facts:
    """All that was read.

    Args:
        tracks: the signals that Prometheus knew, by name, all on one grid.
        since: where the window begins that is looked at; what is before is the baseline.
        until: where it ends.
        unread: why each signal that is missing is missing, by name.
    """

    tracks: Mapping[str, Track]
    since: float
    until: float
    unread: Mapping[str, str]

    def __post_init__(self) -> None:
        """Hold that a window has an end behind its beginning."""
        if self.until <= self.since:
            raise ValueError("a window ends after it begins")

    def window(self, name: str) -> Track | None:
        """Return a signal in the window."""
        track = self.tracks.get(name)
        return None if track is None else track.between(self.since, self.until + track.step_seconds)

    @cached_property
    def in_trouble(self) -> tuple[bool, ...] | None:
        """Return for each step of the grid whether interactive work was in trouble; None where nothing tells."""
        missed = self.tracks.get("missed")
        number = self.tracks.get("missed_requests")
        if missed is not None and missed.known and number is not None:
            told = zip(missed.values, number.values, strict=True)
            return tuple(ratio > MISSED_RATIO and requests >= LEAST_MISSED for ratio, requests in told)
        refused, arrivals = self.tracks.get("interactive_refused"), self.tracks.get("interactive_arrivals")
        if refused is None or arrivals is None or not refused.known:
            return None
        pairs = zip(refused.values, arrivals.values, strict=True)
        return tuple(arrived > 0 and value > REFUSED_RATIO * arrived for value, arrived in pairs)

    @cached_property
    def steps_in_trouble(self) -> int:
        """Return the longest run of steps in trouble inside the window."""
        longest = run = 0
        for trouble in self._in_window():
            run = run + 1 if trouble else 0
            longest = max(longest, run)
        return longest

    @property
    def is_overloaded(self) -> bool:
        """Say whether interactive work was in trouble for long enough to be no accident of a scrape."""
        return self.steps_in_trouble >= STEPS_IN_A_ROW

    @cached_property
    def began(self) -> float | None:
        """Return when the trouble of the window began; None without any."""
        grid = self._grid
        if grid is None:
            return None
        first = next((place for place, trouble in enumerate(self._in_window()) if trouble), None)
        return None if first is None else grid.between(self.since, self.until + grid.step_seconds).at(first)

    def during(self, name: str) -> float | None:
        """Return the median of a signal over the steps in trouble; over the whole window where there were none."""
        track, trouble = self.tracks.get(name), self.in_trouble
        if track is None:
            return None
        inside = track.where(trouble) if trouble is not None and self.is_overloaded else track
        return inside.between(self.since, self.until + track.step_seconds).middle

    def highest(self, name: str) -> float | None:
        """Return the highest value of a signal in the window."""
        window = self.window(name)
        return max(window.known, default=None) if window is not None else None

    def lowest(self, name: str) -> float | None:
        """Return the lowest value of a signal in the window."""
        window = self.window(name)
        return min(window.known, default=None) if window is not None else None

    def baseline(self, name: str) -> Track | None:
        """Return a signal where there was no trouble: before the window, or else inside it before the trouble began."""
        track, trouble = self.tracks.get(name), self.in_trouble
        if track is None:
            return None
        calm = track if trouble is None else track.where([not one for one in trouble])
        before = calm.between(calm.start, self.since)
        if len(before.known) >= LEAST_BEFORE:
            return before
        until = self.since if self.began is None else self.began
        return calm.between(calm.start, until)

    def before(self, name: str) -> float | None:
        """Return the median of a signal in its baseline; None where that is too short."""
        baseline = self.baseline(name)
        return None if baseline is None or len(baseline.known) < LEAST_BEFORE else baseline.middle

    def growth(self, name: str) -> float | None:
        """Return a signal in the trouble by what it was before; None where either is unknown or it was nothing."""
        before, during = self.before(name), self.during(name)
        return None if not before or during is None else during / before

    def departure(self, name: str) -> Departure | None:
        """Return when a signal first left its baseline in the window."""
        baseline, window = self.baseline(name), self.window(name)
        if baseline is None or window is None:
            return None
        return departure_of(baseline, window, _BY_NAME[name].bad, _BY_NAME[name].least_change)

    @property
    def _grid(self) -> Track | None:
        return next(iter(self.tracks.values()), None)

    def _in_window(self) -> tuple[bool, ...]:
        grid, trouble = self._grid, self.in_trouble
        if grid is None or trouble is None:
            return ()
        first = max(0, math.ceil((self.since - grid.start) / grid.step_seconds - 1e-6))
        return trouble[first:]
