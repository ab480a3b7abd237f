"""Whether the replica still does what can be measured: counts of ends, and since when nothing came."""

from llmshed.calibration.events import StopReason
from llmshed.workload.asks import Outcome, Sample

REFUSED_FROM_THE_START = 5
"""A lone request on an idle replica is refused by none that serves."""
FAILED_IN_A_ROW = 8
"""More than a broken connection or two; a replica that is gone fails everything."""
MOST_SILENT_SECONDS = 120.0
"""A prompt at the longest context takes less on any engine that interactive work is put on."""


class Watch:
    """Counts how asks end."""

    def __init__(self) -> None:
        self.finished = 0
        self.refused = 0
        self.failed = 0
        self._failed_in_a_row = 0
        self._heard_at: float | None = None
        self._last_detail = ""

    @property
    def samples(self) -> int:
        """Return how many asks ended by the replica's doing."""
        return self.finished + self.refused + self.failed

    def heard(self, now: float) -> None:
        """Note that something came, or that nothing was to come before."""
        self._heard_at = now

    def ended(self, sample: Sample) -> None:
        """Count an end."""
        match sample.outcome:
            case Outcome.FINISHED:
                self.finished += 1
                self._failed_in_a_row = 0
            case Outcome.REFUSED:
                self.refused += 1
            case Outcome.FAILED:
                self.failed += 1
                self._failed_in_a_row += 1
            case Outcome.CANCELLED:
                return
        self._last_detail = sample.detail or self._last_detail

    def wrong(self, now: float, in_flight: int) -> tuple[StopReason, str] | None:
        """Return why nothing more should be sent, as a reason and a sentence; None when all is well."""
        told = f": {self._last_detail}" if self._last_detail else ""
        if not self.finished and self.refused >= REFUSED_FROM_THE_START:
            return StopReason.REFUSES, f"the engine refused each of the first {self.refused} requests{told}"
        if self._failed_in_a_row >= FAILED_IN_A_ROW:
            return StopReason.FAILS, f"the last {self._failed_in_a_row} requests failed{told}"
        if in_flight and self._heard_at is not None and now - self._heard_at >= MOST_SILENT_SECONDS:
            return StopReason.SILENT, f"{in_flight} requests run and nothing came for {MOST_SILENT_SECONDS:g} s"
        return None
