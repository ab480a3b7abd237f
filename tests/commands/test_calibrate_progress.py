"""What `llmshed calibrate` shows while it runs."""

import asyncio

import pytest

from llmshed.calibration.observations import Knee
from llmshed.calibration.results import Phase, Progress
from llmshed.commands import _calibrate_progress
from llmshed.commands._calibrate_progress import progress, progress_line


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


class Walking:
    """A calibration that is in another phase each second time it is looked at."""

    def __init__(self) -> None:
        self._phases = [phase for phase in Phase for _ in range(2)]

    def progress(self) -> Progress:
        return at(self._phases.pop(0) if self._phases else Phase.OVER)


@pytest.mark.parametrize("quiet", [False, True])
async def test_where_there_is_no_terminal_each_phase_is_a_line(
    quiet: bool,  # noqa: FBT001 - a pytest parameter
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_calibrate_progress, "SHOWN_SECONDS", 0.001)
    with progress(Walking(), quiet=quiet):
        await asyncio.sleep(0.05)
    lines = capsys.readouterr().err.splitlines()
    assert [line.removeprefix("llmshed: ").partition(",")[0] for line in lines] == ([] if quiet else list(Phase))
