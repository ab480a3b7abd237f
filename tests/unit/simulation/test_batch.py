"""The running batch, held against counts kept one by one."""

import hypothesis.strategies as st
from hypothesis import given

from llmshed.simulation.batch import RunningBatch
from llmshed.simulation.cost import StepWork
from llmshed.simulation.pace import Pace
from llmshed.simulation.sequences import Entry, Sequence


def entry(key: int, chunk: int, input_tokens: int = 10) -> Entry:
    return Entry(Sequence(key, input_tokens), input_tokens, chunk, chunk, key, 0.0)


def begin(batch: RunningBatch, *entries: Entry) -> None:
    batch.join(entries)
    for made in entries:
        made.prefilled_tokens = made.input_tokens
    batch.begin_decoding(list(entries))


def test_the_first_token_comes_with_the_prompt_and_one_with_each_step_after_it() -> None:
    batch, one = RunningBatch(Pace(), 1), entry(1, 5)
    batch.join([one])
    assert (batch.chunk_tokens(one), batch.decoding, len(batch)) == (0, 0, 1)
    one.prefilled_tokens = 10
    batch.begin_decoding([one])
    assert batch.chunk_tokens(one) == 1
    assert batch.steps_to_first_end == 4
    batch.pass_decode_steps(4)
    assert batch.chunk_tokens(one) == 5
    assert batch.take_due() == [one]


def test_a_chunk_of_one_token_is_due_at_once() -> None:
    batch, one = RunningBatch(Pace(), 1), entry(1, 1)
    begin(batch, one)
    assert batch.take_due() == [one]


def test_those_that_end_together_end_in_the_order_of_the_queue() -> None:
    batch = RunningBatch(Pace(), 1)
    late, early = entry(7, 6), entry(3, 4)
    begin(batch, late)
    batch.pass_decode_steps(2)
    begin(batch, early)
    batch.pass_decode_steps(3)
    assert batch.take_due() == [early, late]


def test_who_was_removed_is_due_no_more() -> None:
    batch = RunningBatch(Pace(), 1)
    short, long = entry(1, 3), entry(2, 30)
    begin(batch, short, long)
    batch.remove(short)
    assert batch.steps_to_first_end == 29
    batch.pass_decode_steps(5)
    assert batch.take_due() == []


def test_who_left_is_noticed_once_it_decodes() -> None:
    batch = RunningBatch(Pace(), 1)
    decodes, prefills = entry(1, 9), entry(2, 9)
    begin(batch, decodes)
    batch.join([prefills])
    for left in (decodes, prefills):
        batch.note_left(left)
    assert batch.noticed_left() == [decodes]
    batch.remove(decodes)
    batch.remove(prefills)
    assert not batch.someone_left


def test_with_guesses_a_chunk_ends_at_its_ceiling_not_beyond() -> None:
    batch, one = RunningBatch(Pace(2.5), 4), entry(1, 10)
    begin(batch, one)
    # 1, then 3.5 a step: 4, 8, 11 of which 10 are asked for.
    assert batch.steps_to_first_end == 3
    batch.pass_decode_steps(3)
    assert batch.chunk_tokens(one) == 10


def test_guesses_are_verified_as_positions_of_the_step() -> None:
    batch = RunningBatch(Pace(1.0), 4)
    begin(batch, entry(1, 50), entry(2, 50))
    assert batch.decode_work() == StepWork(decoding_sequences=8, resident_tokens=22)
    batch.pass_decode_steps(3)
    assert batch.decode_work().resident_tokens == 22 + 2 * 3 * 2


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 500), st.integers(0, 9)), max_size=12))
def test_residency_is_the_input_and_output_of_what_decodes(plan: list[tuple[int, int, int]]) -> None:
    batch = RunningBatch(Pace(), 1)
    running: dict[Entry, int] = {}
    for key, (chunk, input_tokens, steps) in enumerate(plan):
        new = entry(key, chunk, input_tokens)
        begin(batch, new)
        running[new] = 1
        for _ in range(steps):
            for ended in batch.take_due():
                assert running.pop(ended) == ended.chunk_tokens
                batch.remove(ended)
            assert batch.decode_work() == StepWork(
                decoding_sequences=len(running), resident_tokens=sum(e.input_tokens + n for e, n in running.items())
            )
            batch.pass_decode_steps(1)
            running = {e: n + 1 for e, n in running.items()}
            assert all(batch.chunk_tokens(e) == n for e, n in running.items())
