"""Counts and distributions of cells, and their sums."""

import pytest

from llmshed.whatif.slices import SliceTally, merged, quantiles_of
from llmshed.workload.sketch import QuantileSketch


def tally(arrived: int, good: int, wait: float) -> SliceTally:
    one = SliceTally(arrived=arrived, infeasible=1, finished=good, given_up=arrived - 1 - good, good=good, served=good)
    one.good_tokens, one.good_output_tokens, one.offered_tokens = 100 * good, 30 * good, 100 * (arrived - 1)
    one.refusals["queue"] = arrived - 1 - good
    for _ in range(good):
        one.ttft.add(wait)
    one.note_wait(wait)
    return one


def test_rates_are_over_the_offered_time_and_shares_over_what_was_feasible() -> None:
    told = tally(101, 40, 2.0).slice(10.0, 3.5)
    assert (told.goodput_requests_per_second, told.goodput_tokens_per_second) == (4.0, 400.0)
    assert told.goodput_output_tokens_per_second == 120.0
    assert told.attainment == 0.4, "the 60 refused ones stay in the denominator, the infeasible one does not"
    assert told.good_tokens_share == 0.4
    assert told.starvation.never_served_share == 0.6
    assert (told.starvation.longest_wait_seconds, told.starvation.longest_gap_seconds) == (2.0, 3.5)
    assert told.ttft_seconds.p50 == pytest.approx(2.0)


def test_nothing_feasible_has_no_attainment() -> None:
    told = SliceTally(arrived=3, infeasible=3).slice(10.0, None)
    assert (told.attainment, told.good_tokens_share, told.starvation.never_served_share) == (None, None, 0.0)
    assert told.starvation.longest_wait_seconds is None


def test_a_sum_is_that_of_its_parts_and_leaves_them_alone() -> None:
    one, two = tally(101, 40, 2.0), tally(51, 10, 7.0)
    whole = merged([one, two])
    assert (whole.arrived, whole.infeasible, whole.good, whole.given_up) == (152, 2, 50, 100)
    assert whole.refusals["queue"] == 100
    assert whole.ttft.count == 50
    assert whole.longest_wait_seconds == 7.0
    assert whole.ended == whole.arrived
    assert (one.arrived, one.ttft.count, two.longest_wait_seconds) == (101, 40, 7.0)


def test_every_count_takes_part_in_a_sum() -> None:
    one = SliceTally()
    counts = [name for name in SliceTally.__slots__ if isinstance(getattr(one, name), int)]
    assert len(counts) >= 15
    for number, name in enumerate(counts, start=1):
        setattr(one, name, number)
    whole = merged([one, one])
    assert {name: getattr(whole, name) for name in counts} == {name: 2 * n for n, name in enumerate(counts, start=1)}


def test_every_distribution_takes_part_in_a_sum() -> None:
    one = SliceTally()
    sketches = [name for name in SliceTally.__slots__ if isinstance(getattr(one, name), QuantileSketch)]
    for name in sketches:
        getattr(one, name).add(1.0)
    assert {getattr(merged([one, one]), name).count for name in sketches} == {2}


def test_refusals_are_told_in_one_order() -> None:
    one = SliceTally()
    for reason in ("queue", "budget", "seats"):
        one.refusals[reason] += 1
    assert list(one.slice(1.0, None).refusals) == ["budget", "queue", "seats"]


def test_an_empty_distribution_has_no_figures() -> None:
    told = quantiles_of(QuantileSketch())
    assert (told.count, told.mean, told.p50, told.p99, told.most) == (0, None, None, None, None)
