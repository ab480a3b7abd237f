"""How often the engine preempted, from readings of its counter."""

from llmshed.admission.signals.readings import ReplicaReading


class Preemptions:
    """The counter over one phase; a counter that fell began anew and counts from there."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._counted = 0.0
        self._since = 0.0

    def begin(self, now: float) -> None:
        """Count from now on."""
        self._counted, self._since = 0.0, now

    def read(self, reading: ReplicaReading) -> None:
        """Take a reading."""
        total = reading.preemptions_total
        if total is None:
            return
        if self._last is not None:
            self._counted += total - self._last if total >= self._last else total
        self._last = total

    def per_minute(self, now: float) -> float | None:
        """Return the rate since `begin`; None where the engine does not tell, or no time has passed."""
        seconds = now - self._since
        return None if self._last is None or seconds <= 0 else 60 * self._counted / seconds
