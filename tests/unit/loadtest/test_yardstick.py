"""Objectives by what a lone request takes."""

import pytest

from llmshed.loadtest.yardstick import Yardstick, line_through


@pytest.mark.parametrize(
    ("points", "at", "seconds"),
    [
        ([], 5000, 1.0),
        ([(100, 0.1)], 5000, 1.0),
        ([(100, 0.3)], 5000, 1.5),
        # 0.1 s + 0.0001 s a token: 5 x 0.6 at 5,000.
        ([(1000, 0.2), (2000, 0.3)], 5000, 3.0),
        ([(1000, 0.2), (2000, 0.3)], 1, 1.0),
        # A line that would fall, and one that would begin below nothing.
        ([(1000, 0.4), (2000, 0.3)], 5000, 2.0),
        ([(1000, 0.1), (2000, 0.4)], 5000, 5.0),
    ],
)
def test_the_objective_is_five_times_the_line_and_a_second_at_least(
    points: list[tuple[int, float]], at: int, seconds: float
) -> None:
    assert line_through(0.1, points).ttft_seconds(at) == pytest.approx(seconds)


def test_without_probes_it_is_a_second() -> None:
    assert Yardstick(0.1).ttft_seconds(100_000) == 1.0
