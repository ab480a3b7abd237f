"""Counts of a window against the percentile of all its waits, sorted."""

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from llmshed.ladder.windows import DelayBounds, DelayWindow

BOUNDS = DelayBounds(objective=8.0, entry=9.0, exit=5.6)
# Dense about the bounds, so that ties and neighbours of them come up.
waits = st.lists(
    st.sampled_from((0.0, 5.599, 5.6, 5.601, 7.0, 8.0, 8.001, 9.0, 9.001, math.inf)) | st.floats(0, 20),
    min_size=1,
    max_size=130,
)


def held(samples: list[float], minimum: int = 1) -> DelayWindow:
    window = DelayWindow(BOUNDS, minimum, 0.0)
    for seconds in samples:
        window.sample(seconds)
    return window


def percentile(samples: list[float]) -> float:
    """Return the 95th percentile by nearest rank."""
    return sorted(samples)[math.ceil(95 * len(samples) / 100) - 1]


@settings(max_examples=60)
@given(waits)
def test_the_counts_say_what_the_sorted_waits_say(samples: list[float]) -> None:
    window, p95 = held(samples), percentile(samples)

    assert window.under_pressure() == (p95 > BOUNDS.objective)
    assert window.above_entry() == (p95 > BOUNDS.entry)
    assert window.below_exit(8.0) == (p95 < BOUNDS.exit)
    assert window.signal_seconds() == pytest.approx(p95, rel=0.01, abs=1e-9)
    assert window.check() == ()


@pytest.mark.parametrize(("slow", "of", "above"), [(1, 20, False), (2, 20, True), (5, 100, False), (6, 100, True)])
def test_more_than_one_in_twenty_has_to_be_above(slow: int, of: int, above: bool) -> None:  # noqa: FBT001 - a row
    assert held([9.5] * slow + [0.0] * (of - slow)).above_entry() is above


def test_a_wait_of_the_bound_itself_is_not_above_it_and_not_below() -> None:
    assert not held([8.0] * 20).under_pressure()
    assert not held([5.6] * 20).below_exit(8.0)
    assert held([5.5] * 20).below_exit(8.0)


def test_few_arrivals_are_calm_however_long_their_estimates() -> None:
    window = held([60.0] * 19, minimum=20)

    assert not window.under_pressure()
    assert not window.above_entry()
    assert window.below_exit(8.0)
    assert window.signal_seconds() == pytest.approx(60, rel=0.01)


def test_few_arrivals_are_judged_when_somebody_waits_for_longer_than_the_bound() -> None:
    window = held([0.0, 0.0], minimum=20)
    window.sample_waiting((8.5, 1.0))

    assert window.arrivals == 4
    assert window.under_pressure()
    assert not window.above_entry()  # its bound is 9
    assert not window.below_exit(8.0)
    assert window.below_exit(9.0)


def test_one_who_waits_for_just_as_long_as_the_bound_does_not_wait_too_long() -> None:
    window = held([9.5], minimum=20)
    window.sample_waiting((8.0,))
    assert (window.under_pressure(), window.below_exit(8.0)) == (False, True)


def test_a_window_without_arrivals_tells_no_signal() -> None:
    window = held([])
    assert (window.signal_seconds(), window.below_exit(8.0), window.under_pressure()) == (None, True, False)
