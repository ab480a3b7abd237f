"""Gaps between arrivals: means, variation, and the first gap of a stretch."""

import math
import statistics

import pytest

from fakes.traces import seeded
from llmshed.workload.gaps import POISSON, GapShape, Pattern, gamma_gaps

DRAWS = 40_000

SHAPES = [
    (POISSON, 1.0),
    (GapShape(Pattern.GAMMA, 4.0), 0.5),
    (GapShape(Pattern.GAMMA, 0.25), 2.0),
    (gamma_gaps(3.0), 3.0),
    # The coefficient of variation of Weibull(c): sqrt(G(1 + 2/c) / G(1 + 1/c)^2 - 1).
    (GapShape(Pattern.WEIBULL, 0.5), math.sqrt(5.0)),
    (GapShape(Pattern.WEIBULL, 2.0), math.sqrt(4 / math.pi - 1)),
]


@pytest.mark.parametrize(("shape", "cv"), SHAPES)
def test_gaps_have_the_mean_and_variation_of_their_shape(shape: GapShape, cv: float) -> None:
    rng = seeded(11)
    gaps = [shape.gap(7.0, rng) for _ in range(DRAWS)]
    assert statistics.fmean(gaps) == pytest.approx(7.0, rel=4 * cv / math.sqrt(DRAWS))
    assert statistics.pstdev(gaps) / 7.0 == pytest.approx(cv, rel=0.08)


@pytest.mark.parametrize(("shape", "cv"), SHAPES)
def test_the_wait_from_a_random_instant_is_that_of_the_inspection_paradox(shape: GapShape, cv: float) -> None:
    rng = seeded(12)
    waits = [shape.first(7.0, rng) for _ in range(DRAWS)]
    # E[U L] = E[X^2] / (2 E[X]) = mean x (1 + cv^2) / 2.
    assert statistics.fmean(waits) == pytest.approx(7.0 * (1 + cv**2) / 2, rel=0.05)


@pytest.mark.parametrize("shape", [0.0, -1.0, math.nan, math.inf, 1e-3, 1e7])
def test_a_shape_out_of_range_is_refused(shape: float) -> None:
    with pytest.raises(ValueError, match=r"a shape from 0\.01 to 1e\+06"):
        GapShape(Pattern.WEIBULL, shape)


@pytest.mark.parametrize("cv", [0.0, -1.0, math.nan, math.inf, 10.1])
def test_a_variation_out_of_range_is_refused(cv: float) -> None:
    with pytest.raises(ValueError, match=r"from 0\.001 to 10"):
        gamma_gaps(cv)


@pytest.mark.parametrize("pattern", Pattern)
@pytest.mark.parametrize("shape", [0.01, 1e6])
def test_the_extremes_of_a_shape_still_give_numbers(pattern: Pattern, shape: float) -> None:
    rng = seeded(13)
    drawn = [value for _ in range(200) for value in (GapShape(pattern, shape).gap(1.0, rng), POISSON.first(1.0, rng))]
    assert all(0.0 <= value < math.inf for value in drawn)
