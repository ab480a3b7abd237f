"""Points at even steps, in bounded memory."""

import pytest

from llmshed.whatif.report import TimePoint
from llmshed.whatif.timeline import MOST_POINTS, Timeline


def point(at: float) -> TimePoint:
    return TimePoint(at, 0, 0, 0, 0, 0, 0, 0.0)


@pytest.mark.parametrize("looks", [0, 1, 239, 240, 241, 1000, 100_000])
def test_what_is_kept_is_even_covers_the_run_and_is_bounded(looks: int) -> None:
    timeline = Timeline()
    for number in range(looks):
        timeline.add(point(float(number)))
    kept = [one.at_seconds for one in timeline.points()]
    assert len(kept) < MOST_POINTS + 1
    assert len(kept) >= min(looks, MOST_POINTS // 2)
    if looks > 1:
        step = kept[1] - kept[0]
        assert kept == [step * number for number in range(len(kept))]
        assert looks - 1 - kept[-1] < step
