"""A departure is a run of three steps beyond what the baseline explains, in the direction that is bad."""

import math

import pytest

from llmshed.diagnosis.departure import Bad, departure_of
from llmshed.diagnosis.track import Track

CALM = Track(0, 10, (10, 11, 9, 10, 10, 11, 9, 10, 10, 10))
"""Median 10, median deviation 0 or 1: with a twentieth of the median and 1 as the least change, 11 is not beyond."""


def window(*values: float) -> Track:
    return Track(100, 10, values)


def test_three_steps_in_a_row_count_from_the_first() -> None:
    found = departure_of(CALM, window(10, 20, 10, 20, 22, 24, 30), Bad.UP, 1)
    assert found is not None
    assert (found.at, found.value, found.baseline) == (130, 23, 10)


@pytest.mark.parametrize("values", [(20, 20, 10, 20, 20), (11, 11, 11, 11), (0, 0, 0, 0), ()])
def test_fewer_or_smaller_or_better_is_none(values: tuple[float, ...]) -> None:
    assert departure_of(CALM, window(*values), Bad.UP, 1) is None


def test_the_direction_counts() -> None:
    low = window(10, 2, 2, 2)
    assert departure_of(CALM, low, Bad.UP, 1) is None
    for bad in (Bad.DOWN, Bad.NEITHER):
        found = departure_of(CALM, low, bad, 1)
        assert found is not None
        assert found.at == 110


def test_a_gap_neither_ends_a_run_nor_counts() -> None:
    found = departure_of(CALM, window(20, math.nan, 20, math.nan, 20), Bad.UP, 1)
    assert found is not None
    assert found.at == 100
    assert departure_of(CALM, window(20, math.nan, 20, math.nan), Bad.UP, 1) is None


def test_a_few_peaks_in_the_baseline_hide_nothing_and_a_restless_one_much() -> None:
    peaks = Track(0, 10, (10, 10, 500, 10, 10, 10, 500, 10, 10, 10))
    assert departure_of(peaks, window(20, 20, 20), Bad.UP, 1) is not None
    restless = Track(0, 10, (0, 20, 5, 15, 10, 2, 18, 8, 12, 10))
    assert departure_of(restless, window(25, 25, 25), Bad.UP, 1) is None
    assert departure_of(restless, window(60, 60, 60), Bad.UP, 1) is not None


def test_without_a_baseline_nothing_departs() -> None:
    assert departure_of(Track(0, 10, (1, 1, 1, 1)), window(9, 9, 9), Bad.UP, 1) is None


def test_what_changed_by_less_than_means_anything_has_not_departed() -> None:
    still = Track(0, 10, (0,) * 10)
    assert departure_of(still, window(0.4, 0.4, 0.4), Bad.UP, 0.5) is None
    assert departure_of(still, window(0.6, 0.6, 0.6), Bad.UP, 0.5) is not None
