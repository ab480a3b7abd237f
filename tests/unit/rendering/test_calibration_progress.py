"""The line that `llmshed calibrate` shows while it runs."""

import pytest

from llmshed.calibration.observations import Knee
from llmshed.calibration.results import Phase, Progress
from llmshed.rendering.calibration_progress import progress_line


def at(phase: Phase, *, level: float = 12_000.0, knee: Knee | None = None) -> Progress:
    return Progress(phase, level, "reserved tokens", knee, 754.0, 1_234)


@pytest.mark.parametrize(
    ("knee", "told"),
    [
        (None, "gross ceiling, level 12,000 reserved tokens; 1,234 samples, at most 12 min 34 s left"),
        (Knee(9_000.0, 9_500.0, 9_900.0), "gross ceiling, level 12,000 reserved tokens, knee 9,000 to 9,900; "),
        (Knee(9_000.0, 9_500.0, None), "gross ceiling, level 12,000 reserved tokens, knee at least 9,000; "),
    ],
)
def test_a_line_tells_level_knee_and_time(knee: Knee | None, told: str) -> None:
    assert progress_line(at(Phase.KV, knee=knee)).startswith(told)


def test_between_two_phases_no_level_is_told() -> None:
    assert progress_line(at(Phase.CAP, level=0.0)).startswith("hard cap; 1,234 samples")
