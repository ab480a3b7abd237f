"""Means, gaps and their intervals, against published values, hand calculation and repeated sampling."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmshed.ladder.evaluation import Pair, gap_of, is_beyond, mean_result


@pytest.mark.parametrize(
    ("right", "cases", "low", "high"),
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_of_a_mean_is_that_of_the_literature(right: int, cases: int, low: float, high: float) -> None:
    told = mean_result([(1.0, 1.0)] * right + [(1.0, 0.0)] * (cases - right))
    assert told is not None
    assert told.value == pytest.approx(right / cases)
    assert told.low == pytest.approx(low, abs=5e-5)
    assert told.high == pytest.approx(high, abs=5e-5)


def test_weights_count_in_the_mean_and_make_the_cases_fewer() -> None:
    # (3 x 1 + 1 x 0.5) / 4; with weights 3 and 1 the two cases are worth 16 / 10 = 1.6.
    told, equal = mean_result([(3.0, 1.0), (1.0, 0.5)]), mean_result([(1.0, 1.0), (1.0, 0.75)])
    assert told is not None
    assert equal is not None
    assert told.value == equal.value == 0.875
    assert told.high - told.low > equal.high - equal.low
    assert mean_result([]) is None


def test_a_gap_is_the_share_of_the_primarys_result_that_is_lost() -> None:
    told = gap_of([Pair(1, 1.0, 1.0), Pair(1, 1.0, 0.5), Pair(1, 0.5, 0.5), Pair(1, 0.5, 0.25)])
    assert told is not None
    assert told.value == pytest.approx(1 - 2.25 / 3)
    # d - 0.75 p is 0.25, -0.25, 0.125, -0.125: squares of 0.15625; 4/3 of it is 0.208333, its root over 3 is 0.152145.
    assert told.high - told.value == pytest.approx(1.959964 * 0.152145, rel=1e-4)
    assert told.value - told.low == pytest.approx(told.high - told.value)


def test_a_path_that_does_better_has_a_gap_below_zero() -> None:
    told = gap_of([Pair(1, 0.5, 1.0), Pair(2, 1.0, 1.0)])
    assert told is not None
    assert told.value == pytest.approx(1 - 3 / 2.5)


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [Pair(1, None, 1.0)],
        [Pair(1, 0.0, 1.0)] * 5,
        [Pair(1, 1.0, 1.0)] * 18 + [Pair(1, 1.0, None), Pair(1, None, 1.0)],
    ],
)
def test_too_little_tells_no_gap(pairs: list[Pair]) -> None:
    assert gap_of(pairs) is None


def test_a_few_missing_answers_are_left_out_of_both_paths() -> None:
    pairs = [Pair(1, 1.0, 0.5)] * 19
    assert gap_of([*pairs, Pair(1, 1.0, None)]) == gap_of([*pairs, Pair(1, None, 0.0)]) == gap_of(pairs)


def test_the_interval_of_a_gap_covers_the_truth_as_often_as_it_says() -> None:
    # Results of the primary are right in 80 % of cases; those right ones are lost on the path in 25 %: the gap is 0.25.
    rng, covered, drills = Random(7), 0, 400  # noqa: S311 - draws cases, no secret
    for _ in range(drills):
        pairs = []
        for _ in range(60):
            primary = float(rng.random() < 0.8)
            pairs.append(Pair(rng.choice((1.0, 2.0)), primary, primary * (rng.random() >= 0.25)))
        told = gap_of(pairs)
        assert told is not None
        covered += told.low <= 0.25 <= told.high
    assert 0.91 <= covered / drills <= 0.98


results = st.floats(0, 1)
weights = st.floats(0.01, 100)


@settings(max_examples=50)
@given(st.lists(st.tuples(weights, results), min_size=1, max_size=30))
def test_a_mean_lies_in_its_interval_and_that_between_0_and_1(cases: list[tuple[float, float]]) -> None:
    told = mean_result(cases)
    assert told is not None
    assert 0 <= told.low <= told.value <= told.high <= 1


@settings(max_examples=50)
@given(st.lists(st.builds(Pair, weights, results, results), min_size=1, max_size=30))
def test_a_gap_follows_the_means(pairs: list[Pair]) -> None:
    told = gap_of(pairs)
    primary = mean_result([(pair.weight, pair.primary or 0.0) for pair in pairs])
    degraded = mean_result([(pair.weight, pair.degraded or 0.0) for pair in pairs])
    assert primary is not None
    assert degraded is not None
    if told is None:
        assert primary.value == 0
    elif primary.value > 1e-6:
        assert 1 - told.value == pytest.approx(degraded.value / primary.value, rel=1e-6, abs=1e-9)
        assert told.low <= told.value <= told.high


def test_exactly_what_was_agreed_on_is_not_beyond_it() -> None:
    told = gap_of([Pair(1, 1.0, 0.9)] * 3)
    assert told is not None
    assert not is_beyond(told.value, 0.1)
    assert is_beyond(0.1001, 0.1)
    assert not is_beyond(-0.2, 0.0)
