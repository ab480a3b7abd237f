"""The learnt factor: single steps by hand, and its convergence on waits of known distributions."""

import random
from collections.abc import Callable

import pytest

from llmshed.admission.estimate.factor import LEAST_FACTOR, MOST_FACTOR, LearntFactor

Wait = Callable[[random.Random], float]


def exponential(drawn: random.Random) -> float:
    """0.9 quantile: 2.303."""
    return drawn.expovariate(1.0)


def steady(drawn: random.Random) -> float:
    """0.9 quantile of a log-normal of spread 0.25: exp(0.25 x 1.2816) = 1.378."""
    return drawn.lognormvariate(0.0, 0.25)


def heavy_tailed(drawn: random.Random) -> float:
    """0.9 quantile of a Pareto of index 1.8 above 0.5: 0.5 x 10^(1/1.8) = 1.797."""
    return 0.5 * drawn.paretovariate(1.8)


def taught(
    factor: LearntFactor, wait: Wait, *, raw: float, rate: float, seconds: float, start: float = 0.0, seed: int = 1
) -> float:
    """Teach waits `raw` x `wait` at a rate a second from a start; return the part that was within the estimate."""
    drawn = random.Random(seed)  # noqa: S311 - one seed, one test
    now, within, pairs = start, 0, 0
    while now < start + seconds:
        now += drawn.expovariate(rate)
        actual = raw * wait(drawn)
        within += actual <= raw * factor.value(now)
        pairs += 1
        factor.learn(raw, actual, now)
    return within / pairs


def test_the_factor_is_the_quantile_of_the_ratios_beside_five_of_one() -> None:
    """Of 95 ratios from 1.21 to 3.09 and 5 of 1 in an instant, 10 are above the 90th: 2.89; buckets are a twentieth."""
    factor = LearntFactor()
    for pair in range(95):
        factor.learn(2.0, 2.0 * (1.21 + 0.02 * pair), now=10.0)
    assert factor.value(10.0) == pytest.approx(2.89, rel=0.03)


def test_a_first_wait_does_not_rule() -> None:
    """A tenth of the 11 that are remembered is 1.1, and only one of them is above 1."""
    factor = LearntFactor()
    assert factor.value(0.0) == 1.0
    for _ in range(5):
        factor.learn(1.0, 1.0, now=10.0)
    factor.learn(1.0, 3.0, now=10.0)
    assert factor.value(10.0) == pytest.approx(1.0, abs=0.05)


def test_pairs_below_a_twentieth_of_a_second_teach_nothing() -> None:
    factor = LearntFactor()
    factor.learn(0.01, 0.05, now=1.0)
    assert factor.value(1.0) == 1.0
    factor.learn(0.0, 0.06, now=1.0)
    assert factor.value(2.0) > 1.0


def test_the_factor_is_bounded() -> None:
    up, down = LearntFactor(), LearntFactor()
    for second in range(2_000):
        up.learn(1.0, 100.0, float(second))
        down.learn(1.0, 0.0, float(second))
    assert up.value(2_000.0) == pytest.approx(MOST_FACTOR)
    assert down.value(2_000.0) == pytest.approx(LEAST_FACTOR, rel=0.01)


def test_it_stays_for_a_minute_unsampled_and_then_fades_to_one() -> None:
    """After a minute and 300 s more its logarithm is 1/e of what it was: 4^(1/e) = 1.665."""
    factor = LearntFactor()
    for second in range(100):
        factor.learn(1.0, 100.0, float(second))
    assert factor.value(99.0 + 60.0) == pytest.approx(4.0)
    assert factor.value(99.0 + 360.0) == pytest.approx(1.665, abs=0.001)
    assert factor.value(99.0 + 3_600.0) == pytest.approx(1.0, abs=0.001)


@pytest.mark.parametrize(("wait", "quantile"), [(exponential, 2.303), (steady, 1.378), (heavy_tailed, 1.797)])
@pytest.mark.parametrize("rate", [1.0, 10.0, 40.0])
def test_nine_waits_in_ten_are_within_it(wait: Wait, quantile: float, rate: float) -> None:
    factor = LearntFactor()
    taught(factor, wait, raw=2.0, rate=rate, seconds=200.0)
    seconds = 4_000.0 / rate
    assert taught(factor, wait, raw=2.0, rate=rate, seconds=seconds, start=200.0, seed=2) == pytest.approx(
        0.9, abs=0.02
    )
    assert factor.value(200.0 + seconds) == pytest.approx(quantile, rel=0.2)


@pytest.mark.parametrize("rate", [1.0, 10.0])
@pytest.mark.parametrize(("before", "after"), [(0.8, 2.4), (2.4, 0.8)])
def test_a_sudden_change_by_three_is_learnt_within_five_minutes(rate: float, before: float, after: float) -> None:
    """`raw` is what the terms of the estimate tell all the while; the waits that come are a third or three times."""

    def scaled(by: float) -> Wait:
        return lambda drawn: by * steady(drawn)

    factor = LearntFactor()
    taught(factor, scaled(before), raw=2.0, rate=rate, seconds=600.0)
    taught(factor, scaled(after), raw=2.0, rate=rate, seconds=300.0, start=600.0, seed=2)
    within = taught(factor, scaled(after), raw=2.0, rate=rate, seconds=1_000.0, start=900.0, seed=3)
    assert within == pytest.approx(0.9, abs=0.02)
    assert factor.value(1_900.0) == pytest.approx(1.378 * after, rel=0.2)


def test_a_steady_stream_does_not_make_it_swing() -> None:
    """A thousand pairs are remembered at ten a second: the factor keeps within a tenth of the quantile."""
    factor, drawn = LearntFactor(), random.Random(4)  # noqa: S311 - one seed, one test
    seen = []
    for pair in range(5_000):
        factor.learn(2.0, 2.0 * steady(drawn), pair / 10)
        if pair >= 3_000:
            seen.append(factor.value(pair / 10))
    assert 1.378 / 1.1 < min(seen) < max(seen) < 1.378 * 1.1


def test_each_band_of_estimates_has_its_own_and_between_two_it_goes_straight() -> None:
    """Short waits come out three times as long, long ones half as long; the middles are 0.5 s and 8 s, 2 s between."""
    factor = LearntFactor()
    for _ in range(200):
        factor.learn(0.5, 1.5, 10.0)
        factor.learn(8.0, 4.0, 10.0)
    assert factor.at(0.5, 10.0) == pytest.approx(3.0, rel=0.06)
    assert factor.at(8.0, 10.0) < 1.0
    assert factor.at(1.0, 10.0) == pytest.approx((factor.at(0.5, 10.0) * factor.at(2.0, 10.0)) ** 0.5)
    assert factor.at(0.001, 10.0) == factor.at(0.125, 10.0)
    assert factor.at(1e9, 10.0) == factor.at(32.0, 10.0)


def test_where_a_band_showed_nothing_all_stand_in() -> None:
    factor = LearntFactor()
    for second in range(100):
        factor.learn(0.5, 1.0, float(second))
    assert factor.at(32.0, 99.0) == pytest.approx(factor.value(99.0))


def test_fifteen_pairs_bring_it_below_one() -> None:
    """Of the five that are always remembered two are 1: a tenth of 5 + 15 pairs."""
    factor = LearntFactor()
    for pair in range(16):
        assert factor.value(float(pair) * 0.001) >= 0.95
        factor.learn(10.0, 6.0, float(pair) * 0.001)
    assert factor.value(1.0) < 0.95


def test_waits_beyond_what_was_told_raise_the_quantile_that_is_read() -> None:
    """Ratios of 1 .. 3 in equal parts: the 0.9 quantile is 2.8, the least that is read, and the 0.98 one 2.96."""
    short, missed, kept = LearntFactor(), LearntFactor(), LearntFactor()
    for factor in (short, missed, kept):
        for pair in range(2_000):
            factor.learn(2.0, 2.0 + 0.002 * pair, 10.0)
    for _ in range(1_000):
        missed.judge(1.0, 2.0)
        kept.judge(2.0, 1.0)
        short.judge(0.01, 0.02)
    assert short.value(10.0) == kept.value(10.0) == pytest.approx(2.8, rel=0.02)
    assert missed.value(10.0) == pytest.approx(2.96, rel=0.02)
