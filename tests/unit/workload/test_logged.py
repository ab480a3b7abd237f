"""One logged try: its size, how it counts, and how much of it there was at an instant."""

import pytest

from fakes.logs import logged
from llmshed.observability.endings import Ending
from llmshed.workload.logged import LoggedEnding


def test_its_endings_are_those_of_the_log() -> None:
    assert [ending.value for ending in LoggedEnding] == [ending.value for ending in Ending]


def test_a_list_of_prompts_is_their_mean_as_many_times() -> None:
    request = logged(0, prompt_tokens=(100, 31), copies=2, output_tokens=41)
    assert (request.sequences, request.input_tokens_each, request.output_tokens_each) == (4, 66, 11)


def test_an_empty_prompt_still_has_a_token_to_simulate() -> None:
    assert logged(0, prompt_tokens=(0,)).input_tokens_each == 1


@pytest.mark.parametrize(
    ("ending", "status", "refused"),
    [
        ("refused", 429, True),
        ("refused", 413, True),
        ("evicted", 429, True),
        ("failed", 429, True),  # the engine had no room
        ("failed", 502, False),
        ("cancelled", 0, False),
        ("finished", 200, False),
    ],
)
def test_refused_is_who_found_no_room(ending: str, status: int, refused: bool) -> None:  # noqa: FBT001 - a table's cell
    assert logged(0, ending, status=status).was_refused is refused


def test_a_client_sees_the_first_token_of_a_stream_and_the_whole_of_another_answer() -> None:
    assert logged(0, ttft_seconds=0.2).first_sign_seconds == 0.2
    assert logged(0, ttft_seconds=None, streamed=False, total_seconds=3.0).first_sign_seconds == 3.0
    assert logged(0, "failed", ttft_seconds=0.2).first_sign_seconds is None


@pytest.mark.parametrize(("after", "tokens"), [(0.0, 0), (0.19, 0), (0.2, 1), (0.45, 6), (0.699, 10.98), (0.7, 11)])
def test_a_streams_tokens_come_evenly_after_the_first(after: float, tokens: float) -> None:
    request = logged(0, output_tokens=11, ttft_seconds=0.2, tpot_seconds=0.05, total_seconds=0.7)
    assert request.output_tokens_by(after) == pytest.approx(tokens)


def test_of_another_answer_they_come_evenly_from_its_arrival_on() -> None:
    request = logged(0, output_tokens=10, ttft_seconds=None, tpot_seconds=None, total_seconds=2.0)
    assert [request.output_tokens_by(after) for after in (0.0, 1.0, 2.0, 9.0)] == [0, 5, 10, 10]


def test_what_was_refused_has_none() -> None:
    assert logged(0, "refused").output_tokens_by(10.0) == 0


def test_tokens_that_came_all_at_once_were_there_with_the_first() -> None:
    request = logged(0, output_tokens=5, ttft_seconds=0.2, tpot_seconds=0.0, total_seconds=0.4)
    assert [request.output_tokens_by(after) for after in (0.1, 0.3)] == [0, 5]
