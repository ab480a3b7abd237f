"""The lengths of answers: against hand-made histograms, and against the mean excess of known distributions."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmshed.admission.estimate.outputs import LEAST_SAMPLES, OutputModel
from llmshed.admission.request import Lane

BULK = Lane.BULK


def taught(lengths: list[int], ceiling_tokens: int = 16) -> OutputModel:
    """Return a model of answers under a ceiling of an octave that no test asks for: the lane's lengths stand in."""
    model = OutputModel()
    for length in lengths:
        model.learn(BULK, length, ceiling_tokens)
    return model


def test_until_enough_answers_ended_the_ceiling_stands() -> None:
    model = taught([10] * (LEAST_SAMPLES - 1))
    assert model.remaining_tokens(BULK, 0.0, 1_000) == 1_000
    assert model.lengths_tokens(BULK, 0.0, 1_000, 0.3) == (1_000, 1_000)
    model.learn(BULK, 10, 16)
    assert model.remaining_tokens(BULK, 0.0, 1_000) < 60


def test_lanes_learn_apart() -> None:
    assert taught([10] * 100).remaining_tokens(Lane.INTERACTIVE, 0.0, 1_000) == 1_000


def test_the_octave_of_the_ceiling_tells_more_than_the_lane() -> None:
    """Under a ceiling of 1,024 answers get 900 tokens, under 128 they get 100; nobody asked for 300."""
    model = taught([900] * 200, 1_024)
    for _ in range(200):
        model.learn(BULK, 100, 128)
    assert model.remaining_tokens(BULK, 0.0, 1_024) == pytest.approx(900, rel=0.1)
    assert model.remaining_tokens(BULK, 0.0, 1_600) == pytest.approx(900, rel=0.1)
    assert model.remaining_tokens(BULK, 0.0, 128) == pytest.approx(100, rel=0.1)
    assert model.remaining_tokens(BULK, 0.0, 300) < 250


def test_answers_of_one_length_end_there() -> None:
    """A bucket is a quarter octave, so 100 tokens stand for 90.5..107.6; half an answer of 151 runs to the ceiling."""
    model = taught([100] * 2_000)
    assert model.remaining_tokens(BULK, 0.0, 400) == pytest.approx(99.05 + 300 * 0.5 / 150, rel=0.01)
    assert model.remaining_tokens(BULK, 80.0, 400) == pytest.approx(20, abs=2)
    assert model.lengths_tokens(BULK, 0.0, 400, 0.5) == pytest.approx((99, 99), abs=1)


def test_what_got_longer_than_all_that_was_seen_may_run_to_its_ceiling() -> None:
    model = taught([100] * 500)
    assert model.remaining_tokens(BULK, 200.0, 400) == 200
    assert model.lengths_tokens(BULK, 200.0, 400, 0.1) == (400, 400)


def test_a_ceiling_cuts_the_expectation() -> None:
    model = taught([100, 1_000] * 500)
    assert model.remaining_tokens(BULK, 0.0, 200) == pytest.approx((99 + 200) / 2, rel=0.02)


@pytest.mark.parametrize("produced", [0, 50, 200, 600])
def test_exponential_lengths_have_no_memory(produced: int) -> None:
    """Mean excess of an exponential of mean 200 below a ceiling c beyond x: 200 (1 - exp(-(c - x) / 200))."""
    drawn = random.Random(7)  # noqa: S311 - one seed, one test
    seen = [taught([round(drawn.expovariate(1 / 200)) for _ in range(600)]) for _ in range(40)]
    mean = sum(model.remaining_tokens(BULK, produced, 1_000) for model in seen) / len(seen)
    assert mean == pytest.approx(200 * (1 - math.exp(-(1_000 - produced) / 200)), rel=0.12)


def test_a_heavy_tail_expects_the_more_the_more_was_produced() -> None:
    """Pareto of index 2 above 50: an answer that got to x goes on for x more on average, x - x^2/c below a ceiling.

    150 (50/x)^2 of the 150 that are remembered got that far, and half a one that runs to its ceiling.
    """
    drawn = random.Random(7)  # noqa: S311 - one seed, one test
    seen = [taught([round(50 * drawn.paretovariate(2)) for _ in range(600)]) for _ in range(60)]
    for produced in (60, 120, 240):
        longer, further = 150 * (50 / produced) ** 2, produced - produced**2 / 4_096
        expected = (longer * further + 0.5 * (4_096 - produced)) / (longer + 0.5)
        mean = sum(model.remaining_tokens(BULK, produced, 4_096) for model in seen) / len(seen)
        assert mean == pytest.approx(expected, rel=0.2)


def test_a_mix_that_triples_is_known_after_three_hundred_answers() -> None:
    drawn = random.Random(3)  # noqa: S311 - one seed, one test
    model = taught([round(drawn.gauss(200, 40)) for _ in range(1_000)])
    for _ in range(300):
        model.learn(BULK, round(drawn.gauss(600, 120)), 16)
    assert model.remaining_tokens(BULK, 0.0, 4_096) == pytest.approx(600, rel=0.15)


def test_quantiles_are_those_of_the_distribution() -> None:
    model = taught([*range(1, 1_001)] * 2)  # the last 150 or so weigh most: 850..1,000
    low, high = model.lengths_tokens(BULK, 0.0, 4_096, 0.1)
    assert 600 < low < 850
    assert 950 < high < 1_050


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 5_000), min_size=LEAST_SAMPLES, max_size=60),
    produced=st.floats(0, 6_000),
    ceiling=st.integers(1, 6_000),
    learnt_ceiling=st.sampled_from([16, 1_000, 5_000]),
    quantile=st.floats(0, 0.5),
)
def test_bounds_hold_whatever_was_seen(
    lengths: list[int], produced: float, ceiling: int, learnt_ceiling: int, quantile: float
) -> None:
    model = taught(lengths, learnt_ceiling)
    remaining = model.remaining_tokens(BULK, produced, ceiling)
    assert 1.0 <= remaining <= max(1.0, ceiling - produced + 1e-6)
    first, second = model.lengths_tokens(BULK, produced, ceiling, quantile)
    assert first <= second + 1e-6
    for length in (first, second):
        assert produced + 1.0 <= length <= max(produced + 1.0, ceiling)


def test_weights_stay_in_range_over_many_answers() -> None:
    model = OutputModel()
    for _ in range(6_000):  # the weight of a sample grows by 1/150 each: 1e12 after 4,160
        model.learn(BULK, 100, 16)
    assert model.remaining_tokens(BULK, 0.0, 400) == pytest.approx(100, rel=0.02)
