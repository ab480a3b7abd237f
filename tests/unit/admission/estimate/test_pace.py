"""The learnt decode pace of a replica against hand-made sums; the budget tells 0.1 s a token."""

import pytest

from llmshed.admission.estimate.pace import DecodePace
from llmshed.admission.policy import ReplicaBudget
from llmshed.admission.release import UNKNOWN_DECODE_SECONDS_PER_TOKEN

BUDGET = ReplicaBudget(96_000, 0.1, 64, decode_seconds_per_token=0.1)


def test_the_budgets_figure_stands_until_a_stream_ended() -> None:
    assert DecodePace().seconds_per_token(BUDGET) == 0.1
    assert DecodePace().seconds_per_token(ReplicaBudget(96_000, 0.1, 64)) == UNKNOWN_DECODE_SECONDS_PER_TOKEN


def test_the_first_stream_tells_the_pace_of_its_gaps() -> None:
    pace = DecodePace()
    pace.learn(seconds=2.0, tokens=41)
    assert pace.seconds_per_token(BUDGET) == pytest.approx(0.05)


def test_one_token_tells_nothing() -> None:
    pace = DecodePace()
    pace.learn(seconds=9.0, tokens=1)
    assert pace.seconds_per_token(BUDGET) == 0.1


def test_long_answers_tell_more() -> None:
    """Ten tokens at 0.2 s, then 990 at 0.05 s: the latter weigh 99 times as much (and 32/31 more, being later)."""
    pace = DecodePace()
    pace.learn(2.0, 11)
    pace.learn(49.5, 991)
    assert pace.seconds_per_token(BUDGET) == pytest.approx((2.0 * 31 / 32 + 49.5) / (10 * 31 / 32 + 990))


def test_a_new_pace_is_known_after_a_hundred_streams() -> None:
    pace = DecodePace()
    for _ in range(200):
        pace.learn(10.0, 201)
    for _ in range(100):
        pace.learn(30.0, 201)
    assert pace.seconds_per_token(BUDGET) == pytest.approx(0.15, rel=0.05)


@pytest.mark.parametrize(("seconds", "bounded"), [(1_000.0, 0.4), (0.0, 0.025)])
def test_the_pace_is_bounded_by_the_budgets_figure(seconds: float, bounded: float) -> None:
    pace = DecodePace()
    pace.learn(seconds, 101)
    assert pace.seconds_per_token(BUDGET) == pytest.approx(bounded)
