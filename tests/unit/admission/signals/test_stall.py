"""The stall detector: requests, pieces of answers and time in, the beginning of a silence out."""

import pytest

from llmshed.admission.signals.stall import ExpectedWork, StallDetector

SHORT = ExpectedWork(sequences=1, prefill_seconds=0.5, further_seconds=0.1, streamed=True)
HUGE = ExpectedWork(sequences=1, prefill_seconds=60.0, further_seconds=0.1, streamed=True)
WHOLE = ExpectedWork(sequences=2, prefill_seconds=1.0, further_seconds=20.0, streamed=False)


@pytest.fixture
def detector() -> StallDetector:
    return StallDetector()


def test_where_nothing_runs_nothing_is_stalled(detector: StallDetector) -> None:
    assert detector.silent_since(1e6) is None
    detector.sent(1, SHORT, now=1e6)
    detector.ended(1)
    detector.ended(2)
    assert detector.silent_since(2e6) is None


def test_a_stream_that_never_begins_is_one_after_fifteen_seconds(detector: StallDetector) -> None:
    detector.sent(1, SHORT, now=100.0)
    assert detector.silent_since(114.9) is None
    assert detector.silent_since(115.0) == 100.0


def test_a_stream_that_stops_is_silent_since_the_look_that_saw_its_last_word(detector: StallDetector) -> None:
    detector.sent(1, SHORT, now=100.0)
    detector.heard(1)
    assert detector.silent_since(110.0) is None
    assert detector.silent_since(124.9) is None
    assert detector.silent_since(125.0) == 110.0
    detector.heard(1)
    assert detector.silent_since(126.0) is None


def test_one_huge_prompt_is_no_stall_and_neither_is_the_wait_behind_it(detector: StallDetector) -> None:
    detector.sent(1, HUGE, now=0.0)
    detector.sent(2, SHORT, now=1.0)
    # P = 60.5 s, and a decode step of 0.1 s: 3 x 60.6 = 181.8 s
    assert detector.silent_since(181.7) is None
    assert detector.silent_since(181.9) == 0.0


def test_the_prompt_of_a_client_that_left_is_worked_on_unseen(detector: StallDetector) -> None:
    detector.sent(1, HUGE, now=0.0)
    detector.ended(1)
    detector.sent(2, SHORT, now=1.0)
    assert detector.silent_since(74.9) is None  # the gone prompt ends at 60 s
    assert detector.silent_since(75.0) == 60.0


def test_a_word_of_any_request_is_a_sign_of_life_for_all(detector: StallDetector) -> None:
    detector.sent(1, SHORT, now=0.0)
    detector.sent(2, SHORT, now=0.0)
    for now in range(10, 200, 10):
        detector.heard(2)
        assert detector.silent_since(float(now)) is None


def test_an_error_of_the_engine_is_one_too(detector: StallDetector) -> None:
    detector.sent(1, SHORT, now=0.0)
    detector.spoke()
    assert detector.silent_since(15.0) is None


def test_a_whole_answer_is_silent_until_its_end(detector: StallDetector) -> None:
    detector.sent(1, WHOLE, now=0.0)
    # Its prefill of 1 s is over by prediction; 3 x 20 s of decoding are left.
    assert detector.silent_since(59.9) is None
    assert detector.silent_since(60.0) == 0.0


def test_a_stream_that_is_silent_beside_a_whole_answer_shows_the_stall_at_once(detector: StallDetector) -> None:
    detector.sent(1, WHOLE, now=0.0)
    detector.sent(2, SHORT, now=0.0)
    assert detector.silent_since(15.0) == 0.0


def test_a_request_that_was_just_sent_gets_its_own_patience(detector: StallDetector) -> None:
    long = ExpectedWork(sequences=1, prefill_seconds=1.0, further_seconds=100.0, streamed=False)
    detector.sent(1, long, now=0.0)
    detector.sent(2, SHORT, now=200.0)
    assert detector.silent_since(214.9) is None
    assert detector.silent_since(215.0) == 200.0


def test_begun_answers_are_counted_in_sequences(detector: StallDetector) -> None:
    detector.sent(1, SHORT, now=0.0)
    detector.sent(2, WHOLE, now=0.0)
    assert detector.begun_sequences == 0
    detector.heard(2)
    detector.heard(3)
    assert detector.begun_sequences == 2
    detector.sent(2, WHOLE, now=1.0)  # sent anew on another connection
    assert detector.begun_sequences == 0
