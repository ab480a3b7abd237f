from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from llmshed.calibration.drawing import STRATA, Draws, Spread
from llmshed.calibration.plan import Shape

MIX = tuple(Shape(10 * number, 100 if number % 2 else 300, "interactive") for number in range(1, 33))


def test_each_part_comes_once_before_any_comes_again() -> None:
    spread = Spread(Random(1))  # noqa: S311 - no secret
    for _ in range(5):
        assert sorted(int(spread.share() * STRATA) for _ in range(STRATA)) == list(range(STRATA))


def test_draws_are_of_the_mix_and_as_the_mix() -> None:
    draws = Draws(MIX, Random(1))  # noqa: S311 - no secret
    drawn = [draws.fresh() for _ in range(1600)]
    assert set(drawn) == set(MIX)
    assert Counter(shape.ceiling_tokens for shape in drawn) == {100: 800, 300: 800}


def test_long_answers_are_met_running_more_often() -> None:
    """Three quarters of all running time is that of the answers of 300 tokens."""
    draws = Draws((Shape(1, 100, "a"), Shape(2, 300, "a")), Random(1))  # noqa: S311 - no secret
    met = Counter(shape.reserved_tokens > 200 for shape in (draws.half_done(None) for _ in range(1600)))
    assert met[True] == 1200


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.none() | st.integers(400, 500))
def test_what_is_half_done_keeps_its_reservation_and_the_engines_bound(seed: int, most: int | None) -> None:
    draws = Draws(MIX, Random(seed))  # noqa: S311 - no secret
    for _ in range(20):
        shape = draws.half_done(most)
        assert shape.reserved_tokens in {one.reserved_tokens for one in MIX}
        assert shape.ceiling_tokens >= 1
        assert most is None or shape.input_tokens <= most
