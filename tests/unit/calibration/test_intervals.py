import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmshed.calibration.intervals import share_interval


def test_nothing_counted_says_nothing() -> None:
    assert share_interval(0, 0) == (0.0, 1.0)


def test_the_published_example() -> None:
    """10 of 20 at 1.96 deviations: 0.299 to 0.701 (Newcombe 1998, method 3)."""
    assert share_interval(10, 20, 1.96) == pytest.approx((0.299, 0.701), abs=1e-3)


@settings(max_examples=30)
@given(st.integers(1, 10_000), st.data())
def test_it_holds_the_share_itself(count: int, data: st.DataObject) -> None:
    late = data.draw(st.integers(0, count))
    low, high = share_interval(late, count)
    assert 0 <= low <= late / count + 1e-9
    assert late / count - 1e-9 <= high <= 1
