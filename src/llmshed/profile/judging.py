"""Whether a pace has left what was measured, and for long enough to believe it.

Samples are ratios r = seconds that were seen / seconds that the profile leads to expect. In windows of one minute:

    a window tells     when it has its least number of samples; others are passed over
    it is off          when the median of its r is beyond 1 + 0.2, or below 1 - 0.2, on the same side as the one before
    mismatch           after 5 telling windows in a row that are off
    match              at once while nothing is known; after a mismatch, after 5 in a row that are not off
"""

from statistics import median

from llmshed.profile.comparison import Match

OFF_RATIO = 0.2
"""How far a pace may be from what was measured."""
WINDOW_SECONDS = 60.0
WINDOWS_IN_A_ROW = 5
"""Five minutes: longer than a burst, an engine's warm-up or a neighbour's backup on the same machine."""
MOST_SAMPLES = 512
"""Samples of one window that are kept: more would not move a median."""


class PaceJudge:
    """Judges one pace of one replica; `now` is of one monotonic clock, in seconds.

    Attributes:
        match: what is believed.
        ratio: median of the last window that told anything; None before any did.
    """

    __slots__ = ("_ends_at", "_in_a_row", "_least_samples", "_ratios", "_side", "match", "ratio")

    def __init__(self, least_samples: int) -> None:
        """Know nothing; windows of fewer than `least_samples` tell nothing."""
        self._least_samples = least_samples
        self._ratios: list[float] = []
        self._ends_at: float | None = None
        self._side = 0
        self._in_a_row = 0
        self.match = Match.UNVERIFIED
        self.ratio: float | None = None

    def sample(self, ratio: float, now: float) -> None:
        """Take in one ratio, above 0."""
        self.look(now)
        if len(self._ratios) < MOST_SAMPLES:
            self._ratios.append(ratio)

    def look(self, now: float) -> None:
        """End the window whose time is over."""
        if self._ends_at is not None and now < self._ends_at:
            return
        self._ends_at = now + WINDOW_SECONDS
        if len(self._ratios) >= self._least_samples:
            self.ratio = median(self._ratios)
            self._judge(self.ratio)
        self._ratios.clear()

    def _judge(self, ratio: float) -> None:
        side = 1 if ratio > 1.0 + OFF_RATIO else -1 if ratio < 1.0 - OFF_RATIO else 0
        self._in_a_row = self._in_a_row + 1 if side == self._side else 1
        self._side = side
        if side == 0 and self.match is Match.UNVERIFIED:
            self.match = Match.MATCH
        elif self._in_a_row >= WINDOWS_IN_A_ROW:
            self.match = Match.MATCH if side == 0 else Match.MISMATCH
