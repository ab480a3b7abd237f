"""The release curve against hand-made sums and a fine walk through time."""

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmshed.admission.estimate.curve import ReleaseCurve


def test_amounts_come_with_the_releases() -> None:
    curve = ReleaseCurve([10.0, 20.0], [100.0, 50.0], turnover_per_second=0.1)
    assert [curve.reached_at(amount, 0.0) for amount in (1.0, 100.0, 101.0, 150.0)] == [10.0, 10.0, 20.0, 20.0]
    assert curve.reached_at(151.0, 0.0) is None
    assert curve.reached_at(0.0, 0.0) == float("-inf")
    assert (curve.total, curve.end) == (150.0, 20.0)


def test_an_empty_replica_gives_nothing_back() -> None:
    curve = ReleaseCurve([], [], 0.0)
    assert (curve.reached_at(1.0, 5.0), curve.total, curve.end) == (None, 0.0, None)


def test_what_is_taken_again_comes_free_again() -> None:
    """100 free at 10 and taken again, at 0.1 a second 10 of it come back each second: 50 more at 15."""
    curve = ReleaseCurve([10.0, 30.0], [100.0, 100.0], turnover_per_second=0.1)
    assert curve.reached_at(150.0, ahead=100.0) == pytest.approx(15.0)
    assert curve.reached_at(150.0, ahead=40.0) == 30.0  # only 40 are taken again, and 110 have to come first


def test_beyond_the_last_release_the_turnover_goes_on() -> None:
    """At 30: 200 free, and 100 x 0.1 x 20 = 200 again; from then on 200 x 0.1 = 20 a second."""
    curve = ReleaseCurve([10.0, 30.0], [100.0, 100.0], turnover_per_second=0.1)
    assert curve.reached_at(500.0, ahead=400.0) == pytest.approx(35.0)


@settings(max_examples=100, deadline=None)
@given(
    gaps=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=8),
    turnover=st.sampled_from([0.05, 0.2, 0.5]),
    amount=st.integers(1, 60),
    ahead=st.integers(0, 60),
)
def test_it_is_the_first_instant_of_the_equation(
    gaps: list[tuple[int, int]], turnover: float, amount: int, ahead: int
) -> None:
    """Walk in small steps until F + min(a, J) >= n."""
    instants = [*accumulate(gap for gap, _ in gaps)]
    releases = [(float(at), float(given_back)) for at, (_, given_back) in zip(instants, gaps, strict=True)]
    found = ReleaseCurve([at for at, _ in releases], [part for _, part in releases], turnover).reached_at(amount, ahead)
    total = sum(given_back for _, given_back in releases)
    if amount - ahead > total:
        assert found is None
        return
    assert found is not None
    step, at, taken_again = 0.02, 0.0, 0.0
    while True:
        free = sum(given_back for when, given_back in releases if when <= at + 1e-9)
        if free + min(ahead, taken_again) >= amount - 1e-6:
            break
        taken_again += turnover * free * step
        at += step
    assert found == pytest.approx(at, abs=2 * step)
