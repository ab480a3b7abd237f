from itertools import pairwise
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmshed.calibration.observations import Knee
from llmshed.calibration.search import LEAST_RETURNS, Confirmation, Search, Stage


def test_a_climb_grows_by_what_the_nearest_bound_leaves() -> None:
    search = Search(100.0)
    search.held(0.2)
    assert search.level == pytest.approx(150.0)
    search.held(0.8)
    assert search.level == pytest.approx(187.5)
    search.held(0.99)
    assert search.level == pytest.approx(187.5 * 1.1)


def test_the_first_broken_level_begins_a_bisection() -> None:
    search = Search(100.0)
    search.held(0.2)
    search.broke()
    assert search.stage is Stage.NARROW
    assert search.level == pytest.approx((100 * 150) ** 0.5)


def test_when_the_first_level_breaks_lower_ones_are_tried_until_none_is_left() -> None:
    search = Search(64.0)
    levels = []
    while search.stage is not Stage.DONE:
        levels.append(search.level)
        search.broke()
    assert levels == [64, 32, 16, 8, 4, 2]
    assert search.knee() is None


def test_a_level_that_is_never_exceeded_ends_the_climb_when_it_holds() -> None:
    search = Search(100.0, most=120.0)
    search.held(0.1)
    search.held(0.1)
    assert search.stage is Stage.DONE
    assert search.knee() == Knee(120.0, 120.0, None)


@settings(max_examples=20)
@given(st.floats(20, 1e6), st.floats(0.05, 1.0))
def test_the_bisection_closes_in_on_any_knee(knee: float, pressure: float) -> None:
    search = Search(10.0)
    for _ in range(400):
        if search.stage is Stage.RETURN:
            break
        search.held(pressure) if search.level <= knee else search.broke()
    assert search.stage is Stage.RETURN
    assert search.low is not None
    assert search.low <= knee < (search.high or inf)
    assert (search.high or inf) <= 1.03 * search.low


class TestReturns:
    def returning(self) -> Search:
        search = Search(100.0)
        search.held(1.0)
        search.broke()
        while search.stage is not Stage.RETURN:
            search.held(1.0)
        return search

    def test_levels_lie_around_the_estimate_until_it_is_sure(self) -> None:
        search, sure = self.returning(), Knee(99.0, 100.0, 101.0)
        levels = []
        for _ in range(LEAST_RETURNS):
            search.return_to(sure, enough=True)
            levels.append(search.level)
        assert min(levels) < 100 < max(levels)
        search.return_to(sure, enough=True)
        assert search.stage is Stage.DONE

    def test_a_wide_interval_or_few_observations_go_on(self) -> None:
        search = self.returning()
        for _ in range(3 * LEAST_RETURNS):
            search.return_to(Knee(90.0, 100.0, 110.0), enough=True)
            search.return_to(Knee(99.0, 100.0, 101.0), enough=False)
        assert search.stage is Stage.RETURN

    def test_where_nothing_held_it_falls_faster_and_faster_until_something_does(self) -> None:
        search = self.returning()
        levels = []
        for _ in range(5):
            search.return_to(Knee(0.0, 0.97 * search.level, search.level), enough=True)
            levels.append(search.level)
        steps = [lower / higher for higher, lower in pairwise(levels)]
        assert steps == pytest.approx([0.97**2, 0.97**4, 0.97**8, 0.97**16])
        search.return_to(Knee(0.9 * search.level, search.level, 1.02 * search.level), enough=True)
        assert search.level == pytest.approx(levels[-1], rel=0.02)

    def test_without_a_broken_level_it_climbs_on(self) -> None:
        search = self.returning()
        level = search.level
        search.return_to(Knee(level, level, None), enough=True)
        assert search.level == pytest.approx(1.03 * level)
        search.return_to(Knee(90.0, 100.0, None), enough=True)
        assert search.level < 102  # a level that broke is not gone beyond, however unsure its bound


def test_a_confirmation_goes_down_until_a_level_holds() -> None:
    search = Confirmation(100.0)
    search.broke()
    search.held(0.9)
    assert search.stage is Stage.DONE
    assert search.knee() == Knee(75.0, 75.0, 100.0)


def test_a_confirmation_gives_up_at_a_tenth() -> None:
    search = Confirmation(100.0)
    while search.stage is not Stage.DONE:
        search.broke()
    assert search.knee() is None
    assert search.level < 10
