"""What a pool's ladder hears of its requests, and what is in force after each step."""

import math
from typing import Any

import pytest

from fakes.rungs import STOP_BULK, cap, ladder_of, pool_on
from llmshed.admission.echo import Arrival
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.service.laddering import Laddering
from llmshed.admission.verdict import Decision, DelayTerms, Verdict
from llmshed.ladder.reading import PoolReading
from llmshed.ladder.standing import Cause, Hold

NOTHING = PoolReading((), 0, None, None, 0)
LADDER = ladder_of(STOP_BULK, cap(64), sample_minimum=1, window_seconds=60.0)


def laddering(objective: float = 1.0) -> Laddering:
    return Laddering(pool_on(LADDER), LADDER, objective, 0.0)


def verdict(
    decision: Decision = Decision.REFUSE, wait: float | None = None, lane: Lane = Lane.INTERACTIVE, **changes: Any
) -> Verdict:
    delay = None if wait is None else DelayTerms(0, 0, wait, 0.0, 1.0, 1.0, wait, 0.0)
    return Verdict(decision, lane=lane, priority_class=PriorityClass.LOW, delay=delay, **changes)


def heard(*verdicts: Verdict) -> tuple[int, float | None]:
    """Return the arrivals that a window counted, and its signal."""
    one = laddering()
    for each in verdicts:
        one.decided(each)
    one.advance(60.0, lambda: NOTHING)
    window = one.standing.window
    assert window is not None
    return window.arrivals, window.signal_seconds


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (verdict(Decision.ADMIT), (1, 0.0)),
        (verdict(Decision.QUEUE, 3.0), (0, None)),
        (verdict(wait=math.inf, reason=Reason.TOKEN_BUDGET_EXHAUSTED), (1, math.inf)),
        (verdict(reason=Reason.SHED_PRIORITY, rung="r1"), (1, 0.0)),
        (verdict(reason=Reason.SHED_PRIORITY, rung="r1", arrival=Arrival.REPEAT), (0, None)),
        (verdict(reason=Reason.TENANT_QUOTA), (0, None)),
        (verdict(reason=Reason.CONTEXT_LIMIT), (0, None)),
        (verdict(reason=Reason.TOKEN_BUDGET_EXHAUSTED, arrival=Arrival.EARLY), (0, None)),
        (verdict(Decision.ADMIT, lane=Lane.BULK), (0, None)),
    ],
)
def test_which_arrivals_a_window_counts_and_with_what(one: Verdict, expected: tuple[int, float | None]) -> None:
    assert heard(one) == expected


def test_the_wait_that_a_refused_one_was_spared_counts() -> None:
    arrivals, signal = heard(verdict(wait=4.0, reason=Reason.QUEUE_FULL))
    assert arrivals == 1
    assert signal == pytest.approx(4.0, rel=0.01)


def test_who_left_the_queue_counts_if_it_was_interactive() -> None:
    one = laddering()
    one.waited(Lane.INTERACTIVE, 0.5)
    one.waited(Lane.BULK, 50.0)
    one.advance(60.0, lambda: NOTHING)
    window = one.standing.window
    assert window is not None
    assert window.arrivals == 1
    assert window.signal_seconds == pytest.approx(0.5, rel=0.01)


def test_what_is_let_in_under_pressure_is_the_rate_of_service() -> None:
    one = laddering(objective=1.0)
    one.decided(verdict(wait=4.0, reason=Reason.QUEUE_FULL))
    one.let_in(600)
    one.let_in(300)
    one.advance(60.0, lambda: NOTHING)
    window = one.standing.window
    assert window is not None
    assert window.service_tokens_per_second == 15.0


def granted(one: Laddering) -> int | None:
    """Return the ceiling that is granted to anybody; None where none is lowered."""
    found = None if one.measures is None else one.measures.cap(PriorityClass.LOW, "acme")
    return None if found is None else found.rung.max_output_tokens


def test_what_acts_follows_each_step() -> None:
    one = laddering()
    assert (one.in_force, granted(one), one.has_rung("r2"), one.has_rung("r3")) == ((), None, True, False)
    (step,) = one.hold(Hold("r2", 100.0, "a test"), 1.0)
    assert (step.before, step.after, step.cause) == (0, 2, Cause.HELD)
    assert granted(one) == 64
    assert one.back_in_seconds(2, 1.0) == 99.0
    (step,) = one.release()
    assert (step.before, step.after, step.cause) == (2, 0, Cause.RELEASED)
    assert granted(one) is None
    assert one.release() == []
    assert one.check() == []


def test_a_rung_that_is_renewed_under_its_name_acts_as_it_says_now() -> None:
    one = laddering()
    one.hold(Hold("r2", 100.0, "a test"), 1.0)
    lower = ladder_of(STOP_BULK, cap(32), sample_minimum=1)
    assert one.renew(pool_on(lower), lower, 1.0, 2.0) == []
    assert granted(one) == 32


def test_a_ladder_that_is_taken_away_goes_with_a_step_to_the_ground() -> None:
    one = laddering()
    assert one.dropped() == []
    one.hold(Hold("r1", 100.0, "a test"), 1.0)
    (step,) = one.dropped()
    assert (step.pool, step.before, step.after, step.cause) == ("main", 1, 0, Cause.RELOADED)
    assert (step.standing.ladder, step.standing.in_force) == ("small@1", ())
