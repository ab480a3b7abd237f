import pytest

from llmshed.simulation.batch import RunningBatch
from llmshed.simulation.pace import Pace
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import JoinReason
from llmshed.simulation.room import room_beside, room_from_idle
from llmshed.simulation.sequences import Entry, Sequence

WHOLE = ReplicaParameters(version="2.4.0", max_batch_prefill_tokens=8191, max_batch_size=12)
PIECES = ReplicaParameters(max_batch_prefill_tokens=1000, max_batch_size=12)


def batch(running: int) -> RunningBatch:
    made = RunningBatch(Pace(), 1)
    entries = [Entry(Sequence(key, 1), 1, 50, 50, key, 0.0, prefilled_tokens=1) for key in range(running)]
    made.join(entries)
    made.begin_decoding(entries)
    return made


def test_from_idle_the_whole_budget_and_all_seats_are_there() -> None:
    room = room_from_idle(PIECES)
    assert (room.prefill_tokens, room.seats, room.least) == (1000, 12, 0)


def test_in_pieces_what_runs_takes_its_tokens_and_seats_do_not_count() -> None:
    room, reason = room_beside(PIECES, batch(9), 0, 1)
    assert (room.prefill_tokens, room.seats, room.least, reason) == (991, None, 0, JoinReason.CHUNKING)


def test_an_unfinished_prompt_takes_its_next_piece() -> None:
    running = batch(9)
    running.join([Entry(Sequence(99, 5000), 5000, 50, 50, 99, 0.0, next_prefill_tokens=991)])
    assert room_beside(PIECES, running, 0, 1)[0].prefill_tokens == 0


@pytest.mark.parametrize(("version", "least"), [("2.4.0", 3), ("1.4.5", 12)])
def test_whole_prompts_wait_until_enough_of_them_do(version: str, least: int) -> None:
    parameters = ReplicaParameters(version=version, max_batch_prefill_tokens=8191)
    room, reason = room_beside(parameters, batch(10), 0, 19)
    assert (room.prefill_tokens, room.least, reason) == (8191, least, JoinReason.BACKPRESSURE)


def test_after_enough_steps_any_number_may_join() -> None:
    room, reason = room_beside(WHOLE, batch(10), 0, 20)
    assert (room.least, room.seats, reason) == (0, 2, JoinReason.WAIT_EXCEEDED)
    assert room_beside(WHOLE, batch(20), 0, 20)[0].seats == 0


def test_the_budget_is_rounded_up_to_whole_blocks() -> None:
    parameters = ReplicaParameters(max_batch_prefill_tokens=1000, block_tokens=16)
    assert room_from_idle(parameters).prefill_tokens == 1008
    assert room_beside(parameters, batch(9), 0, 1)[0].prefill_tokens == 992


@pytest.mark.parametrize("parameters", [WHOLE, PIECES])
def test_a_batch_that_holds_as_many_tokens_as_the_cache_has_leaves_no_room(parameters: ReplicaParameters) -> None:
    # Only prefixes that several share, counted for each of them, add up to so much.
    for steps in (1, 20):
        assert room_beside(parameters, batch(9), 49_151, steps)[0].prefill_tokens > 0
        assert room_beside(parameters, batch(9), 49_152, steps)[0].prefill_tokens == 0
