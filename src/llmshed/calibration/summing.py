"""From a sweep to what is told of it."""

from llmshed.calibration.results import Phase, SweepResult
from llmshed.calibration.sweep import Sweep


def summed(phase: Phase, sweep: Sweep, preemptions_per_minute: float | None, now: float) -> SweepResult:
    """Return what a sweep has found by now; its knee is the one of its latest estimate, or of `knee` at its end."""
    return SweepResult(
        phase=phase,
        knee=sweep.found,
        broke=sweep.broke,
        late=tuple(sweep.late.levels()),
        slow=tuple(sweep.slow.levels()),
        paces=tuple(sorted(sweep.paces.items())),
        pace_seconds=sweep.pace_seconds,
        output_ratio=sweep.output_ratio,
        preemptions_per_minute=preemptions_per_minute,
        requests=sweep.sent,
        seconds=now - sweep.began_at,
    )
