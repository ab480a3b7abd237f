import pytest

from llmshed.calibration.dwell import Dwell, Verdict

FINE = [0.2] * 32


def test_a_climb_waits_for_enough_and_then_judges() -> None:
    dwell = Dwell(0.0, first_tokens=[0.2] * 16, paces=[0.5] * 3)
    assert dwell.climbing(0, 5.0, 20.0) is Verdict.OPEN
    dwell.paces.append(0.5)
    assert dwell.climbing(0, 5.0, 20.0) is Verdict.HELD
    assert dwell.pressure == pytest.approx(0.5)


def test_a_climb_ends_at_once_where_many_are_late_or_wait_too_long() -> None:
    assert Dwell(0.0, first_tokens=[0.2] * 10 + [1.5] * 5).climbing(0, 1.0, 20.0) is Verdict.BROKE
    assert Dwell(0.0).climbing(5, 1.0, 20.0) is Verdict.BROKE
    assert Dwell(0.0, refused=5).climbing(0, 1.0, 20.0) is Verdict.BROKE
    assert Dwell(0.0, first_tokens=[0.2] * 10, answers=[0.5] * 10 + [1.5] * 5).climbing(0, 1.0, 20.0) is Verdict.BROKE
    assert Dwell(0.0, first_tokens=FINE, answers=[1.5] * 4, paces=[0.5] * 4).climbing(0, 1.0, 20.0) is Verdict.HELD


def test_a_pace_beyond_its_bound_breaks_a_level() -> None:
    assert Dwell(0.0, paces=[1.1] * 4, first_tokens=FINE).climbing(0, 5.0, 20.0) is Verdict.BROKE
    assert Dwell(0.0, paces=[1.1] * 4, first_tokens=FINE).narrowing((99, 0), (99, 0), 5.0, 40.0) is Verdict.BROKE


def test_when_its_time_is_over_a_climb_judges_what_is_there() -> None:
    assert Dwell(0.0, first_tokens=[0.1]).climbing(0, 20.0, 20.0) is Verdict.HELD


@pytest.mark.parametrize(
    ("late", "slow", "verdict"),
    [
        ((60, 0), (60, 0), Verdict.HELD),
        ((60, 12), (60, 0), Verdict.BROKE),
        ((60, 0), (60, 12), Verdict.BROKE),
        ((60, 0), (10, 0), Verdict.OPEN),
        ((60, 3), (60, 3), Verdict.OPEN),
    ],
)
def test_near_the_knee_a_verdict_needs_an_interval_on_one_side(
    late: tuple[int, int], slow: tuple[int, int], verdict: Verdict
) -> None:
    assert Dwell(0.0, first_tokens=FINE).narrowing(late, slow, 5.0, 40.0) is verdict


def test_near_the_knee_the_likelier_verdict_is_given_when_time_is_over() -> None:
    assert Dwell(0.0, first_tokens=FINE).narrowing((60, 3), (60, 3), 40.0, 40.0) is Verdict.HELD
    assert Dwell(0.0, first_tokens=FINE).narrowing((60, 4), (60, 3), 40.0, 40.0) is Verdict.BROKE


def test_what_has_not_settled_is_not_judged() -> None:
    drifting = [place / 32 for place in range(32)]
    assert Dwell(0.0, first_tokens=drifting).narrowing((60, 0), (60, 0), 5.0, 40.0) is Verdict.OPEN
