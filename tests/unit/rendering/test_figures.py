import pytest

from llmshed.rendering.figures import changed, count, duration, factor, measured, number, share
from llmshed.whatif.compare import MEASURES, Change, Unit

BY_NAME = {measure.name: measure for measure in MEASURES}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0.0, "0"),
        (0.00004, "0"),
        (0.0378, "0.038"),
        (0.9996, "1.000"),
        (9.87, "9.87"),
        (98.76, "98.8"),
        (1234.5, "1,234"),
        (-0.5, "-0.500"),
    ],
)
def test_a_number_keeps_the_digits_that_matter(value: float | None, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0.0, "0.0 %"),
        (0.0001, "<0.1 %"),
        (0.123, "12.3 %"),
        (0.9999, ">99.9 %"),
        (1.0, "100.0 %"),
        (0.0005, "0.1 %"),
    ],
)
def test_a_share_that_is_not_quite_all_or_nothing_does_not_read_as_such(value: float | None, shown: str) -> None:
    assert share(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(None, "-"), (0, "0"), (14_176, "14,176")])
def test_a_count_marks_its_thousands(value: float | None, shown: str) -> None:
    assert count(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(1.0, "1x"), (2.5, "2.5x"), (10.0, "10x")])
def test_a_scale_is_a_factor(value: float, shown: str) -> None:
    assert factor(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.25, "0.250 s"), (59.2, "59.2 s"), (60, "1 min 0 s"), (2399.6, "40 min 0 s"), (7325, "2 h 2 min")],
)
def test_a_long_time_reads_as_one(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("unit", "value", "shown"),
    [
        (Unit.SHARE, 0.5, "50.0 %"),
        (Unit.COUNT, 1500.0, "1,500"),
        (Unit.PER_SECOND, 1500.0, "1,500"),
        (Unit.SECONDS, 0.5, "0.500 s"),
        (Unit.SECONDS, None, "-"),
    ],
)
def test_a_measure_is_shown_in_its_unit(unit: Unit, value: float | None, shown: str) -> None:
    assert measured(unit, value) == shown


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("goodput_tokens_per_second", 0.125, "+12.5 %"),
        ("goodput_tokens_per_second", -0.5, "-50.0 %"),
        ("goodput_tokens_per_second", -0.0001, "+0.0 %"),
        ("attainment", 0.101, "+10.1 points"),
        ("attainment", None, "-"),
    ],
)
def test_a_change_tells_whether_it_is_relative_or_in_points(name: str, value: float | None, shown: str) -> None:
    assert changed(Change(BY_NAME[name], 1.0, 1.0, value)) == shown
