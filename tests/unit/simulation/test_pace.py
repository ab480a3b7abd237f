from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.simulation.pace import Pace


def test_without_speculation_a_step_gives_one_token() -> None:
    assert [Pace().tokens(steps) for steps in range(4)] == [0, 1, 2, 3]
    assert [Pace().steps(tokens) for tokens in range(4)] == [0, 1, 2, 3]


def test_guesses_that_prove_right_add_up_to_whole_tokens() -> None:
    # One and a half guesses a step: 2.5 tokens in the mean.
    assert [Pace(1.5).tokens(steps) for steps in range(5)] == [0, 2, 5, 7, 10]
    assert Pace(1.5).steps(6) == 3


@pytest.mark.parametrize("accepted", [0.25, 0.5, 1.0, 2.75])
def test_tokens_follow_the_mean_to_within_one(accepted: float) -> None:
    for steps in range(200):
        mean = steps * (1 + Fraction(accepted))
        assert mean - 1 < Pace(accepted).tokens(steps) <= mean


@given(accepted=st.floats(0, 64), tokens=st.integers(0, 5000))
def test_the_steps_for_a_number_of_tokens_are_the_fewest(accepted: float, tokens: int) -> None:
    pace = Pace(accepted)
    steps = pace.steps(tokens)
    assert pace.tokens(steps) >= tokens
    assert steps == 0 or pace.tokens(steps - 1) < tokens
