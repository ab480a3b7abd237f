import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmshed.calibration.isotonic import crossing, fitted


def test_neighbours_out_of_order_share_their_mean() -> None:
    rows = [(1.0, 10, 0), (2.0, 10, 4), (3.0, 10, 2), (4.0, 10, 9)]
    assert [share for _, share in fitted(rows)] == pytest.approx([0.0, 0.3, 0.3, 0.9])


def test_a_larger_number_weighs_more() -> None:
    assert [share for _, share in fitted([(1.0, 1, 1), (2.0, 99, 0)])] == pytest.approx([0.01, 0.01])


def test_between_two_levels_the_fit_is_straight() -> None:
    level, broke = crossing([(100.0, 50, 0), (110.0, 50, 25)], 0.05)
    assert broke
    assert level == pytest.approx(101.0)


def test_without_a_broken_level_the_highest_is_told_and_without_one_that_held_none() -> None:
    assert crossing([(1.0, 10, 0), (2.0, 10, 0)], 0.05) == (2.0, False)
    assert crossing([(1.0, 10, 5), (2.0, 10, 9)], 0.05) == (0.0, True)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1)), min_size=1, max_size=30))
def test_the_fit_never_falls_and_keeps_the_number_that_was_late(seen: list[tuple[int, float]]) -> None:
    rows = [(float(place), count, round(share * count)) for place, (count, share) in enumerate(seen)]
    shares = [share for _, share in fitted(rows)]
    assert shares == sorted(shares)
    late = sum(share * count for share, (_, count, _) in zip(shares, rows, strict=True))
    assert late == pytest.approx(sum(row[2] for row in rows))
