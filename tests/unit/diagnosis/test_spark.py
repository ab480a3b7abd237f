"""A course in a few characters, from nothing to its highest."""

import math

import pytest

from llmshed.diagnosis.spark import sparkline
from llmshed.diagnosis.track import Track


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ((0, 1, 2, 3, 4, 5, 6, 7), "▁▂▃▄▅▆▇█"),
        ((0,) * 8, "▁" * 8),
        ((5,) * 8, "█" * 8),
        ((math.nan, 0, 7, math.nan, 7, 0, 7, 0), " ▁█ █▁█▁"),
        ((-3, 7, 7, 7, 7, 7, 7, 7), "▁███████"),
        ((math.nan,) * 8, " " * 8),
    ],
)
def test_eight_values(values: tuple[float, ...], drawn: str) -> None:
    assert sparkline(Track(0, 1, values), 8) == drawn


def test_each_character_is_the_mean_of_its_part() -> None:
    assert sparkline(Track(0, 1, (0, 0, 0, 14, 7, 7)), 3) == "▁██"
    assert sparkline(Track(0, 1, (3.0, 7.0)), 4) == " ▄ █", "fewer values than characters leave gaps"
