"""When the trouble was, and how each signal stood in it and before it."""

import math

import pytest

from fakes.incident import BEGINS, SUFFERING, UNTIL, staged
from llmshed.diagnosis.facts import Facts
from llmshed.diagnosis.track import Track


def test_trouble_begins_with_the_first_step_and_lasts_to_the_end() -> None:
    facts = staged(SUFFERING)
    assert facts.is_overloaded
    assert facts.began == BEGINS
    assert facts.steps_in_trouble == (UNTIL - BEGINS) / 15 + 1
    assert facts.during("ttft_p95") == pytest.approx(1.9, rel=0.02)
    assert facts.before("ttft_p95") == pytest.approx(0.3, rel=0.02)
    assert facts.growth("ttft_p95") == pytest.approx(1.9 / 0.3, rel=0.03)


def test_without_trouble_the_whole_window_counts() -> None:
    facts = staged({"lent": 0.9})
    assert not facts.is_overloaded
    assert facts.began is None
    assert facts.during("lent") == pytest.approx(0.7, abs=0.21), "half of the window at 50 %, half at 90 %"


def test_two_steps_are_an_accident() -> None:
    values = [0.0] * 40
    values[30:32] = [0.9, 0.9]
    track = Track(0, 15, tuple(values))
    number = track.with_values(lambda value: 100 * value)
    facts = Facts({"missed": track, "missed_requests": number}, 300, 585, {})
    assert (facts.steps_in_trouble, facts.is_overloaded, facts.began) == (2, False, 450)


def test_few_requests_that_missed_are_no_trouble() -> None:
    track = Track(0, 15, (0.5,) * 40)
    facts = Facts({"missed": track, "missed_requests": track}, 300, 585, {})
    assert facts.in_trouble == (False,) * 40


def test_where_the_time_before_was_trouble_too_the_calm_inside_the_window_is_the_baseline() -> None:
    missed = Track(0, 15, (0.9,) * 20 + (0.0,) * 10 + (0.9,) * 10)
    facts = Facts(
        {
            "missed": missed,
            "missed_requests": missed.with_values(lambda value: 100 * value),
            "lent": Track(0, 15, (0.8,) * 20 + (0.3,) * 10 + (0.9,) * 10),
        },
        300,
        585,
        {},
    )
    assert facts.before("lent") == 0.3
    assert facts.during("lent") == 0.9


def test_what_is_missing_is_none_everywhere() -> None:
    facts = Facts({"missed": Track(0, 15, (math.nan,) * 40)}, 300, 585, {"lent": "no such series"})
    assert facts.in_trouble is None
    for look in (facts.during, facts.before, facts.growth, facts.highest, facts.lowest, facts.departure, facts.window):
        assert look("lent") is None


def test_a_window_needs_an_end_behind_its_beginning() -> None:
    with pytest.raises(ValueError, match="ends after"):
        Facts({}, 60, 60, {})
