"""Tries of a visit, and what makes it good."""

from dataclasses import replace

import pytest

from fakes.stages import EDGES, stage, traced
from llmshed.whatif.door import Door
from llmshed.whatif.visits import Try, Visit

DOOR = Door(stage(), EDGES)


def visit(first_arrived_at: float = 0.0, **changed: object) -> Visit:
    """A visit with objectives of 1 s and 0.1 s."""
    return DOOR.visit(replace(traced(0.0, 10, 50), **changed), first_arrived_at)  # type: ignore[arg-type]  # any field


def test_the_first_token_of_any_sequence_is_the_requests() -> None:
    attempt = Try(1, visit(copies=2), 0.0, open_sequences={1: None, 2: None})
    assert attempt.note_first_token(2, 0.5)
    assert not attempt.note_first_token(1, 0.7)
    assert attempt.first_token_at == 0.5


def test_the_end_of_the_last_sequence_is_the_requests_and_the_slowest_gives_its_pace() -> None:
    attempt = Try(1, visit(copies=2), 0.0, open_sequences={1: None, 2: None})
    attempt.note_first_token(1, 1.0)
    attempt.note_first_token(2, 1.0)
    assert not attempt.note_end(1, 11, 2.0)  # 0.1 s a token
    assert attempt.note_end(2, 5, 3.0)  # 0.5 s a token
    assert (attempt.ended_at, attempt.output_tokens, attempt.slowest_tpot_seconds) == (3.0, 16, 0.5)


def test_one_token_has_no_pace() -> None:
    attempt = Try(1, visit(), 0.0, open_sequences={1: None})
    attempt.note_first_token(1, 1.0)
    assert attempt.note_end(1, 1, 1.0)
    assert attempt.slowest_tpot_seconds is None
    assert attempt.met_objectives


@pytest.mark.parametrize(
    ("came", "first", "pace", "good"),
    [
        (0.0, 1.0, 0.1, True),
        (0.0, 1.001, 0.05, False),
        (0.0, 0.5, 0.101, False),
        (9.0, 10.0, 0.1, True),
        (8.0, 10.0, 0.1, False),
    ],
)
def test_a_stream_is_good_by_its_first_token_since_the_first_arrival_and_its_pace(
    came: float, first: float, pace: float, *, good: bool
) -> None:
    attempt = Try(1, visit(came), 9.0, first_token_at=first, ended_at=first + 1, slowest_tpot_seconds=pace)
    assert attempt.met_objectives is good
    assert attempt.seen_at == first


@pytest.mark.parametrize(("ended", "good"), [(1.0 + 49 * 0.1 - 1e-9, True), (1.0 + 49 * 0.1 + 0.01, False)])
def test_a_whole_answer_has_the_time_of_a_stream_that_met_both(ended: float, *, good: bool) -> None:
    attempt = Try(1, visit(streamed=False), 0.0, first_token_at=0.9, ended_at=ended, output_tokens=50)
    assert attempt.met_objectives is good
    assert attempt.seen_at == ended


def test_without_a_first_token_nothing_is_good() -> None:
    assert not Try(1, visit(), 0.0).met_objectives


def test_the_slowest_sequence_gives_the_pace_also_when_it_ends_first() -> None:
    attempt = Try(1, visit(copies=2), 0.0, open_sequences={1: 0.0, 2: 1.0})
    attempt.note_end(1, 3, 2.0)  # 1 s a token
    attempt.note_end(2, 11, 3.0)  # 0.2 s a token
    assert attempt.slowest_tpot_seconds == 1.0
