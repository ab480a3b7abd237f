"""Distributions by their quantiles."""

import math
from collections.abc import Sequence

import pytest

from fakes.traces import seeded
from llmshed.workload.quantiles import QuantileFunction


def test_it_is_straight_between_points_and_flat_beyond() -> None:
    told = QuantileFunction((0.25, 0.5, 0.75), (10.0, 20.0, 60.0))
    assert [told.at(share) for share in (0.0, 0.25, 0.375, 0.5, 0.625, 0.75, 1.0)] == [10, 10, 15, 20, 40, 60, 60]


def test_a_share_that_stands_twice_is_a_jump() -> None:
    told = QuantileFunction((0.0, 0.5, 0.5, 1.0), (0.0, 10.0, 100.0, 110.0))
    values = [told.at(number / 1000) for number in range(1001)]
    assert not [value for value in values if 10.0 < value < 100.0]
    assert told.at(0.5) == 100.0


def test_draws_by_inversion_have_the_quantiles_again() -> None:
    told = QuantileFunction((0.0, 0.9, 1.0), (0.0, 90.0, 1000.0))
    rng = seeded(5)
    draws = sorted(told.at(rng.random()) for _ in range(20_000))
    # Four standard errors of a share of 20,000 draws: at most 0.0141.
    for share in (0.1, 0.5, 0.9):
        within = sum(draw <= told.at(share) for draw in draws) / len(draws)
        assert within == pytest.approx(share, abs=0.0142)


@pytest.mark.parametrize(
    ("shares", "values", "told"),
    [
        ((), (), "one value for each share"),
        ((0.5,), (1.0, 2.0), "one value for each share"),
        ((0.5, 0.4), (1.0, 2.0), "shares rise"),
        ((-0.1, 0.4), (1.0, 2.0), "shares rise"),
        ((0.5, 1.1), (1.0, 2.0), "shares rise"),
        ((0.5, math.nan), (1.0, 2.0), "shares rise"),
        ((0.5, 0.6), (2.0, 1.0), "never decrease"),
        ((0.5, 0.6), (2.0, math.nan), "never decrease"),
    ],
)
def test_points_out_of_order_are_refused(shares: Sequence[float], values: Sequence[float], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        QuantileFunction(shares, values)
