from random import Random

import pytest

from llmshed.calibration.observations import Observations


def observed(late_from: float, *, levels: range = range(90, 111), each: int = 40) -> Observations:
    """Return levels of which all from one on are late, over many blocks of time."""
    seen = Observations()
    for block in range(each):
        for level in levels:
            seen.add(block * 16.0, float(level), late=level >= late_from, near_knee=True)
    return seen


def test_the_knee_is_where_the_share_crosses() -> None:
    knee = observed(100.5).knee(0.05, Random(1))  # noqa: S311 - no secret
    assert knee is not None
    assert knee.low <= knee.point <= (knee.high or 0)
    assert knee.point == pytest.approx(100.5, rel=0.01)


def test_blocks_that_disagree_widen_the_interval() -> None:
    seen = Observations()
    for block in range(20):
        for level in range(90, 111):
            seen.add(block * 16.0, float(level), late=level >= (94 if block % 4 == 0 else 106), near_knee=True)
    wide = seen.knee(0.05, Random(1))  # noqa: S311 - no secret
    sharp = observed(100.0).knee(0.05, Random(1))  # noqa: S311 - no secret
    assert wide is not None
    assert sharp is not None
    assert (wide.high or 0) - wide.low > (sharp.high or 0) - sharp.low


def test_without_a_broken_level_there_is_no_upper_bound() -> None:
    knee = observed(1000.0).knee(0.05, Random(1))  # noqa: S311 - no secret
    assert knee is not None
    assert knee.high is None
    assert knee.point == pytest.approx(110, rel=0.01)


def test_where_all_broke_nothing_is_safe_and_the_search_goes_lower() -> None:
    knee = observed(1.0).knee(0.05, Random(1))  # noqa: S311 - no secret
    assert knee is not None
    assert knee.low == 0
    assert knee.point < 90


def test_what_is_far_from_the_knee_is_shown_and_not_estimated_from() -> None:
    seen = Observations()
    seen.add(0.0, 50.0, late=True, near_knee=False)
    assert seen.knee(0.05, Random(1)) is None  # noqa: S311 - no secret
    ((level, count, late),) = seen.levels()
    assert (count, late) == (1, 1)
    assert level == pytest.approx(50, rel=0.01)


def test_near_means_neighbouring_levels() -> None:
    seen = observed(100.5, each=1)
    count, late = seen.near(100.0)
    assert 2 <= count <= 4
    assert 0 < late < count


def test_all_that_was_seen_tells_a_level_where_nothing_near_the_knee_held() -> None:
    seen = observed(1.0)
    assert seen.crossing(0.05) == 0
    for level in (40, 50, 60):
        for _ in range(100):
            seen.add(0.0, float(level), late=level == 60, near_knee=False)
    assert 49 < seen.crossing(0.05) < 60
    assert Observations().crossing(0.05) == 0
