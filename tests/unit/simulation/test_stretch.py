"""A run of engine calls: its ends in closed form, held against exact sums call by call."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.simulation.stretch import Stretch

STRETCHES = st.builds(
    Stretch,
    began_at=st.floats(0, 1e6),
    first_seconds=st.floats(1e-5, 10),
    growth_seconds=st.floats(0, 1e-3),
    steps=st.integers(1, 2000),
)


def test_each_call_takes_longer_by_the_growth() -> None:
    stretch = Stretch(began_at=10.0, first_seconds=2.0, growth_seconds=0.5, steps=4)
    # 2, 2.5, 3 and 3.5 seconds.
    assert [stretch.ended_at(step) for step in range(5)] == [10, 12, 14.5, 17.5, 21]
    assert stretch.ends_at == 21


@pytest.mark.parametrize(
    ("now", "steps"), [(0, 0), (10, 0), (11.99, 0), (12, 1), (14.49, 1), (14.5, 2), (20.99, 3), (21, 4), (1e9, 4)]
)
def test_a_call_counts_from_the_instant_at_which_it_ends(now: float, steps: int) -> None:
    assert Stretch(10.0, 2.0, 0.5, 4).steps_by(now) == steps


def test_cutting_moves_no_end_and_never_lengthens() -> None:
    stretch = Stretch(10.0, 2.0, 0.5, 4)
    assert stretch.cut(3).ends_at == stretch.ended_at(3)
    assert stretch.cut(9) == stretch


@given(STRETCHES)
def test_ends_equal_the_sum_of_the_calls(stretch: Stretch) -> None:
    end, length = Fraction(stretch.began_at), Fraction(stretch.first_seconds)
    for _ in range(stretch.steps):
        end += length
        length += Fraction(stretch.growth_seconds)
    assert stretch.ends_at == pytest.approx(float(end), rel=1e-12)


@given(STRETCHES, st.floats(-1, 2))
def test_steps_by_is_the_last_call_that_has_ended(stretch: Stretch, share: float) -> None:
    now = stretch.began_at + share * (stretch.ends_at - stretch.began_at)
    done = stretch.steps_by(now)
    assert done == 0 or stretch.ended_at(done) <= now
    assert done == stretch.steps or stretch.ended_at(done + 1) > now


@given(STRETCHES, st.integers(0, 2000))
def test_an_end_told_is_an_end_found(stretch: Stretch, step: int) -> None:
    step = min(step, stretch.steps)
    assert stretch.ended_at(stretch.steps_by(stretch.ended_at(step))) == stretch.ended_at(step)
