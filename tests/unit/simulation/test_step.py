import pytest

from llmshed.simulation.cost import StepWork
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.sequences import Entry, FinishReason, NaturalEnd, Sequence
from llmshed.simulation.step import finish_reason, next_chunk, with_prompts, work_through_prompts


def entry(input_tokens: int, piece: int, before: int = 0) -> Entry:
    made = Entry(Sequence(1, input_tokens), input_tokens, 100, 100, 0, 0.0)
    made.prefilled_tokens, made.next_prefill_tokens = before, piece
    return made


def pairs_one_by_one(piece: int, before: int) -> int:
    return sum(before + place for place in range(1, piece + 1))


@pytest.mark.parametrize(("piece", "before"), [(1, 0), (4, 0), (1, 999), (500, 1500), (4096, 12_288)])
def test_each_token_of_a_piece_attends_to_all_before_it_and_to_itself(piece: int, before: int) -> None:
    work = with_prompts(StepWork(decoding_sequences=3, resident_tokens=77), [entry(20_000, piece, before)])
    assert work == StepWork(piece, pairs_one_by_one(piece, before), 3, 77)


def test_the_work_of_several_prompts_adds_up() -> None:
    work = with_prompts(StepWork(), [entry(10, 10), entry(30, 20, 5)])
    assert work.prefill_tokens == 30
    assert work.attention_pairs == pairs_one_by_one(10, 0) + pairs_one_by_one(20, 5)


def test_an_unfinished_prompt_takes_what_the_others_leave_of_the_next_step() -> None:
    short, long = entry(40, 40), entry(500, 60)
    # Seven run: one token for each of the six others, 94 for the long prompt.
    assert work_through_prompts([short, long], 7, 100) == [short]
    assert (long.prefilled_tokens, long.next_prefill_tokens) == (60, 94)


def test_the_last_piece_is_no_longer_than_what_is_left() -> None:
    long = entry(500, 60, 400)
    assert work_through_prompts([long], 1, 100) == []
    assert long.next_prefill_tokens == 40
    assert work_through_prompts([long], 1, 100) == [long]


def test_a_prompt_goes_on_by_one_token_when_decodes_take_the_whole_budget() -> None:
    long = entry(500, 60)
    work_through_prompts([long], 200, 100)
    assert long.next_prefill_tokens == 1


def test_the_newest_of_two_unfinished_prompts_goes_first() -> None:
    old, new = entry(5000, 99), entry(150, 1)
    # Two run, so 99 tokens are left beside one for the other.
    work_through_prompts([old, new], 2, 100)
    assert (old.next_prefill_tokens, new.next_prefill_tokens) == (1, 99)
    work_through_prompts([old, new], 2, 100)
    assert (old.next_prefill_tokens, new.next_prefill_tokens) == (49, 50)
    assert work_through_prompts([old, new], 2, 100) == [new]


def test_a_natural_end_comes_before_the_ceiling() -> None:
    made = Entry(Sequence(1, 10, natural_end=NaturalEnd(100, FinishReason.STOP)), 10, 100, 100, 0, 0.0)
    assert finish_reason(made, 100) is FinishReason.STOP
    assert finish_reason(made, 99) is FinishReason.LENGTH


def test_the_next_chunk_has_the_output_in_its_prompt() -> None:
    parameters = ReplicaParameters()
    made = Entry(Sequence(1, 10, asked_output_tokens=1500), 10, 1024, 1500, 0, 0.0)
    plan = next_chunk(parameters, made, 1024)
    assert plan is not None
    assert (plan.input_tokens, plan.chunk_tokens) == (1034, 1024)
    assert next_chunk(parameters, made, 2048) is None


def test_there_is_no_next_chunk_where_validation_would_fail() -> None:
    parameters = ReplicaParameters()
    made = Entry(Sequence(1, 7000, asked_output_tokens=5000), 7000, 1024, 5000, 0, 0.0)
    assert next_chunk(parameters, made, 1024) is None
