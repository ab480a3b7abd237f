"""Where a calibration stands, in one line."""

from typing import TYPE_CHECKING

from llmshed.rendering.figures import count, duration

if TYPE_CHECKING:
    from llmshed.calibration import Progress


def progress_line(told: "Progress") -> str:
    """Return where a calibration stands: phase, level, what is known of the knee, and the time that is left at most."""
    parts = [told.phase.value]
    if told.level:  # none while the replica drains between two phases
        parts.append(f"level {count(told.level)} {told.unit}")
    if told.knee is not None:
        low, high = told.knee.low, told.knee.high
        parts.append(f"knee at least {count(low)}" if high is None else f"knee {count(low)} to {count(high)}")
    return f"{', '.join(parts)}; {count(told.samples)} samples, at most {duration(told.seconds_left)} left"
