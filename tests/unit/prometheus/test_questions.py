"""Many questions share one time; what is late is named and holds nobody up."""

import threading

from llmshed.clock import SystemClock
from llmshed.prometheus.answers import Series
from llmshed.prometheus.errors import PrometheusError, Trouble
from llmshed.prometheus.questions import MOST_AT_ONCE, ask_all

ONE = (Series({}, (1.0,), (2.0,)),)


def fails() -> tuple[Series, ...]:
    raise PrometheusError(Trouble.BAD_QUERY, "no such function")


def test_each_question_has_its_own_answer_or_error() -> None:
    found = ask_all({"good": lambda: ONE, "bad": fails, "empty": tuple}, 5.0, SystemClock())
    assert found["good"] == ONE
    assert found["empty"] == ()
    assert isinstance(found["bad"], PrometheusError)
    assert list(found) == ["good", "bad", "empty"]


def test_nothing_is_asked_of_nobody() -> None:
    assert ask_all({}, 5.0, SystemClock()) == {}


def test_what_does_not_answer_is_named_and_the_rest_is_told() -> None:
    stuck = threading.Event()

    def waits() -> tuple[Series, ...]:
        stuck.wait(30)
        return ONE

    found = ask_all({"slow": waits, "quick": lambda: ONE}, 0.2, SystemClock())
    stuck.set()
    assert found["quick"] == ONE
    late = found["slow"]
    assert isinstance(late, PrometheusError)
    assert late.trouble is Trouble.TIMED_OUT
    assert "0.2 s" in str(late)


def test_questions_run_side_by_side_up_to_a_bound() -> None:
    everybody = threading.Barrier(MOST_AT_ONCE)

    def meets() -> tuple[Series, ...]:
        everybody.wait(10)  # breaks unless as many run at once
        return ONE

    found = ask_all({str(number): meets for number in range(2 * MOST_AT_ONCE)}, 10.0, SystemClock())
    assert set(map(type, found.values())) == {tuple}
