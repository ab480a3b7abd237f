"""The measured prefill rate against sums by hand and against a made engine."""

import math
import random

import pytest

from llmshed.admission.prefill.rate import MeasuredRate


def test_until_there_are_samples_it_is_the_profiles_or_the_assumed_one() -> None:
    assert MeasuredRate(10_000.0).tokens_per_second == 10_000
    assert MeasuredRate(None).tokens_per_second == 1_000


def test_one_sample_by_hand() -> None:
    rate = MeasuredRate(10_000.0)
    rate.learn(4_000, 0.8, 4_000)
    kept = math.exp(-0.08)
    assert rate.tokens_per_second == pytest.approx((10_000 * kept + 4_000) / (kept + 0.8))


@pytest.mark.parametrize("truth", [4_000.0, 9_000.0, 30_000.0])
def test_it_comes_to_the_true_rate_though_prompts_of_a_step_end_together(truth: float) -> None:
    rate = MeasuredRate(10_000.0)
    sizes = random.Random(7)  # noqa: S311 - the same prompts each time
    for _ in range(300):
        step = [sizes.randint(20, 3_000) for _ in range(4)]
        rate.learn(step[0], sum(step) / truth, sum(step))
        for tokens in step[1:]:
            rate.learn(tokens, 0.0, tokens)
    assert rate.tokens_per_second == pytest.approx(truth, rel=0.05)


def test_a_rate_beyond_the_bounds_of_a_profile_is_not_believed() -> None:
    slow, fast = MeasuredRate(1_000.0), MeasuredRate(1_000.0)
    for _ in range(100):
        slow.learn(100, 0.5, 600)
        fast.learn(100, 0.001, 600)
    assert (slow.tokens_per_second, fast.tokens_per_second) == (250, 4_000)


def test_a_stall_is_forgotten_within_a_minute_of_work() -> None:
    rate = MeasuredRate(1_000.0)
    rate.learn(2_000, 600.0, 8_000)
    for _ in range(60):
        rate.learn(1_000, 1.0, 8_000)
    assert rate.tokens_per_second == pytest.approx(1_000, rel=0.02)


def test_an_unknown_rate_may_be_found_high_but_not_below_a_quarter_of_the_assumed_one() -> None:
    high, low = MeasuredRate(None), MeasuredRate(None)
    for _ in range(100):
        high.learn(5_000, 0.1, 5_000)
        low.learn(10, 1.0, 5_000)
    assert high.tokens_per_second == pytest.approx(50_000, rel=0.1)
    assert low.tokens_per_second == 250


def test_another_profile_moves_the_bounds_and_keeps_what_was_measured() -> None:
    rate = MeasuredRate(1_000.0)
    rate.renew(8_000.0)
    assert rate.tokens_per_second == 2_000
    rate.renew(None)
    assert rate.tokens_per_second == 1_000
