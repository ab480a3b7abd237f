"""What is common to readers: rows that tell of no finished answer, and clocks."""

import math

import pytest

from fakes.traces import seeded
from llmshed.errors import TraceError
from llmshed.workload.readers.reading import Elapsed, Reading


def test_a_finished_answer_keeps_its_length() -> None:
    assert Reading(seeded()).true_length(100, 7) == (7, False)


def test_a_failed_answer_is_guessed_from_those_before_it() -> None:
    reading = Reading(seeded())
    assert reading.true_length(100, 0) is None
    for _ in range(30):
        reading.true_length(100, 7)
    assert reading.true_length(100, 0) == (7, True)
    assert dict(reading.skipped) == {"no output tokens, and none seen before to guess from": 1}


def test_a_guess_is_no_observation() -> None:
    reading = Reading(seeded())
    reading.true_length(100, 7)
    for _ in range(100):
        reading.true_length(100, 0)
    assert reading.lengths._all.count == 1


def test_a_row_without_input_is_skipped_and_counted() -> None:
    reading = Reading(seeded())
    assert [reading.true_length(0, 5), reading.true_length(0, 0)] == [None, None]
    assert dict(reading.skipped) == {"no input tokens": 2}


@pytest.mark.parametrize("told", [0.0, -1.0, math.nan, math.inf])
def test_a_rate_or_duration_is_positive_and_finite(told: float) -> None:
    with pytest.raises(ValueError, match="more than 0 and finite"):
        Reading(seeded(), rate_per_second=told)
    with pytest.raises(ValueError, match="more than 0 and finite"):
        Reading(seeded(), duration_seconds=told)


def test_elapsed_time_is_exact_far_from_the_epoch() -> None:
    elapsed = Elapsed()
    start = 1_700_158_623_979_960_000
    assert [elapsed.since_first(start + step, 1) for step in (0, 100, 1_000_000_100)] == [0.0, 1e-7, 1.0000001]


def test_time_never_goes_back_not_even_before_the_first() -> None:
    elapsed = Elapsed()
    elapsed.since_first(2_000_000_000, 1)
    with pytest.raises(TraceError, match="line 2: arrives 1 s before the request above it"):
        elapsed.since_first(1_000_000_000, 2)


def test_no_trace_lasts_for_ages() -> None:
    elapsed = Elapsed()
    elapsed.since_first(0, 1)
    with pytest.raises(TraceError, match=r"line 2: arrives 1e\+09 s after the first request"):
        elapsed.since_first(10**18 + 10**9, 2)
