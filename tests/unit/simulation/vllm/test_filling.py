"""Who gets the tokens and blocks of a step, as vLLM's `Scheduler.schedule` gives them out."""

from dataclasses import replace

import pytest

from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.radix import lay_out
from llmshed.simulation.sequences import Phase, Sequence
from llmshed.simulation.vllm.batch import Batch, StepPlan
from llmshed.simulation.vllm.blocks import Holding
from llmshed.simulation.vllm.entry import VllmEntry
from llmshed.simulation.vllm.line import WaitingLine
from llmshed.simulation.vllm.parameters import SchedulingPolicy, VllmParameters

SMALL = VllmParameters(
    max_num_seqs=4, max_num_batched_tokens=100, max_model_len=160, kv_tokens=11 * 16, prefix_caching=False
)
"""Ten usable blocks of 16 tokens."""


class Bench:
    """A batch and its line, moved step by step."""

    def __init__(self, parameters: VllmParameters = SMALL) -> None:
        self.parameters = parameters
        self.batch, self.line = Batch(parameters), WaitingLine(parameters.policy)
        self.entries: dict[int, VllmEntry] = {}

    def arrive(self, key: int, input_tokens: int, ids: tuple[int, ...] = (), priority: int = 0) -> VllmEntry:
        holding = Holding(lay_out(PromptBlocks(ids, 16), input_tokens, self.parameters.block_tokens))
        sequence = Sequence(key, input_tokens, 100, priority=priority)
        entry = self.entries[key] = VllmEntry(sequence, input_tokens, 100, key, 0.0, holding)
        self.line.join(entry)
        return entry

    def plan(self) -> StepPlan:
        plan = self.batch.plan(self.line, 0.0)
        assert self.batch.check() == ()
        return plan

    def end(self, plan: StepPlan) -> None:
        self.batch.pass_steps(plan.steps, more=False)
        self.batch.settle()
        self.batch.take_ended()

    def step(self, steps: int = 1) -> StepPlan:
        """Take whole plans until at least `steps` have ended, and return the last."""
        plan = self.plan()
        self.end(plan)
        left = steps - plan.steps
        return self.step(left) if left > 0 else plan

    def running(self) -> list[int]:
        return [entry.key for entry in self.batch]

    def waiting(self) -> list[int]:
        return [entry.key for entry in self.line]

    def pieces(self) -> dict[int, int]:
        return {entry.key: entry.piece_tokens for entry in self.batch if entry.piece_tokens}


def test_prompts_join_in_order_and_the_last_is_cut_to_what_the_step_has_left() -> None:
    bench = Bench()
    for key, tokens in ((1, 60), (2, 30), (3, 40), (4, 5)):
        bench.arrive(key, tokens)
    plan = bench.plan()
    assert bench.pieces() == {1: 60, 2: 30, 3: 10}
    assert (plan.joined, plan.work.prefill_tokens, bench.waiting()) == (3, 100, [4])


def test_decoding_sequences_come_before_the_rest_of_a_prompt_and_that_before_new_ones() -> None:
    bench = Bench()
    for key, tokens in ((1, 60), (2, 30), (3, 40), (4, 5)):
        bench.arrive(key, tokens)
    bench.step()
    plan = bench.plan()
    assert bench.pieces() == {3: 30, 4: 5}
    # Attention: tokens 11 to 40 of the third see all before them and themselves; the fourth is new.
    assert plan.work.attention_pairs == sum(range(11, 41)) + sum(range(1, 6))
    assert (plan.work.decoding_sequences, plan.work.resident_tokens) == (2, 61 + 31)


def test_no_more_run_than_there_are_seats() -> None:
    bench = Bench()
    for key in range(6):
        bench.arrive(key, 10)
    bench.plan()
    assert (bench.running(), bench.waiting()) == ([0, 1, 2, 3], [4, 5])


def test_a_prompt_that_does_not_fit_blocks_all_behind_it() -> None:
    bench = Bench()
    bench.arrive(1, 90)
    bench.step()
    bench.arrive(2, 70)
    bench.arrive(3, 1)
    bench.plan()
    assert (bench.running(), bench.waiting()) == ([1], [2, 3]), "6 of 10 blocks are held, 5 are needed"


@pytest.mark.parametrize(("reserved", "running"), [(True, [1]), (False, [1, 2])])
def test_all_of_a_prompt_must_have_room_unless_only_its_first_piece_is_asked_for(
    reserved: bool,  # noqa: FBT001 - a row of the table
    running: list[int],
) -> None:
    bench = Bench(replace(SMALL, scheduler_reserve_full_isl=reserved))
    bench.arrive(1, 60)
    bench.arrive(2, 110)
    bench.plan()
    assert bench.running() == running, "4 blocks are held; 110 tokens need 7, the 40 of this step 3"


def test_the_watermark_stays_free_for_those_that_run_but_does_not_hold_up_a_lone_sequence() -> None:
    bench = Bench(replace(SMALL, watermark_ratio=0.3))
    bench.arrive(1, 90)
    bench.arrive(2, 30)
    bench.plan()
    assert bench.parameters.watermark_blocks == 3
    assert bench.running() == [1], "4 blocks are free, 1 + 3 would have to be for the piece, 2 + 3 for the prompt"
    alone = Bench(replace(SMALL, watermark_ratio=0.5))
    alone.arrive(1, 90)
    alone.plan()
    assert alone.running() == [1]


def test_without_chunked_prefill_a_prompt_waits_until_a_step_has_room_for_all_of_it() -> None:
    bench = Bench(replace(SMALL, chunked_prefill=False, max_num_batched_tokens=160))
    bench.arrive(1, 100)
    bench.arrive(2, 40)
    bench.arrive(3, 30)
    bench.plan()
    assert (bench.pieces(), bench.waiting()) == ({1: 100, 2: 40}, [3])


def test_a_threshold_bounds_each_prompts_piece_and_lets_others_in_beside_it() -> None:
    bench = Bench(replace(SMALL, long_prefill_token_threshold=30))
    bench.arrive(1, 80)
    bench.arrive(2, 10)
    bench.plan()
    assert bench.pieces() == {1: 30, 2: 10}


def test_when_no_block_is_free_the_last_that_joined_gives_up_all_of_its_own() -> None:
    bench = Bench()
    bench.arrive(1, 64)
    bench.arrive(2, 33)
    bench.arrive(3, 31)
    bench.step(2)
    # 4 + 3 + 2 blocks and 1 free: the first takes it with its 65th token, the third has none for its 33rd.
    assert bench.running() == [1, 2, 3]
    plan = bench.step(2)
    while not plan.preempted:
        plan = bench.step()
    assert [entry.key for entry in plan.preempted] == [3]
    assert (bench.running(), bench.waiting()) == ([1, 2], [3])
    assert (bench.entries[3].blocks, bench.entries[3].computed_tokens) == (0, 0)


def test_a_step_that_preempted_somebody_lets_nobody_join() -> None:
    bench = Bench()
    bench.arrive(1, 64)
    bench.arrive(2, 64)
    bench.arrive(3, 15)
    plan = bench.plan()
    while not plan.preempted:
        bench.end(plan)
        plan = bench.plan()
    assert plan.joined == 0
    assert plan.steps == 1, "at the next step they may"


def test_a_preempted_sequence_computes_its_prompt_and_its_output_again() -> None:
    bench = Bench()
    bench.arrive(1, 64)
    bench.arrive(2, 64)
    plan = bench.plan()
    while not plan.preempted:
        bench.end(plan)
        plan = bench.plan()
    bench.end(plan)
    victim = bench.entries[2]
    output = victim.output_tokens
    assert output > 0
    bench.batch.remove(bench.entries[1])
    again = bench.plan()
    assert again.work.prefill_tokens == 64 + output
    bench.end(again)
    assert bench.batch.output_tokens(victim) == output + 1


def test_with_a_prefix_cache_a_preempted_sequence_finds_the_blocks_that_nobody_took() -> None:
    bench = Bench(replace(SMALL, prefix_caching=True))
    bench.arrive(1, 64)
    bench.arrive(2, 64)
    plan = bench.plan()
    while not plan.preempted:
        bench.end(plan)
        plan = bench.plan()
    bench.end(plan)
    victim = bench.entries[2]
    bench.batch.remove(bench.entries[1])
    full_blocks = (64 + victim.output_tokens - 1) // 16
    # The first sequence took one block since: the last full one of the victim, which it had given back first.
    assert bench.plan().work.prefill_tokens <= 64 + victim.output_tokens - 16 * (full_blocks - 1)


def test_by_priority_the_largest_number_is_preempted_wherever_it_stands() -> None:
    bench = Bench(replace(SMALL, policy=SchedulingPolicy.PRIORITY))
    bench.arrive(1, 48, priority=9)
    bench.arrive(2, 48, priority=1)
    bench.plan()
    bench.arrive(3, 48, priority=1)
    assert bench.running() == [2, 1]
    plan = bench.step()
    while not plan.preempted:
        plan = bench.step()
    assert [entry.key for entry in plan.preempted] == [1]
    assert bench.running() == [2, 3]


def test_of_equal_priority_the_latest_arrival_is_preempted() -> None:
    bench = Bench(replace(SMALL, policy=SchedulingPolicy.PRIORITY))
    bench.arrive(1, 64)
    bench.arrive(2, 64)
    plan = bench.step()
    while not plan.preempted:
        plan = bench.step()
    assert [entry.key for entry in plan.preempted] == [2]


def test_a_victim_that_was_served_already_gives_its_tokens_of_the_step_back() -> None:
    bench = Bench(replace(SMALL, policy=SchedulingPolicy.PRIORITY))
    low = bench.arrive(1, 70, priority=9)
    bench.step()
    bench.arrive(2, 80, priority=1)
    bench.step()
    # Both hold 5 of 10 blocks. The first is served before the second lacks its sixth block.
    plan = bench.step()
    assert [entry.key for entry in plan.preempted] == [1]
    assert plan.work.decoding_sequences == 1
    assert (low.phase, low.piece_tokens) == (Phase.QUEUED, 0)


def test_behind_a_sequence_that_had_to_preempt_itself_nobody_is_served_in_that_step() -> None:
    bench = Bench(replace(SMALL, policy=SchedulingPolicy.PRIORITY))
    bench.arrive(1, 20, priority=0)
    bench.arrive(2, 47, priority=9)
    bench.step()
    bench.arrive(3, 79, priority=1)
    bench.step()
    assert bench.running() == [1, 2, 3]
    # All 10 blocks are held: 2, 3 and 5. The second computes its 49th token, and is the largest by priority itself.
    plan = bench.step()
    assert [entry.key for entry in plan.preempted] == [2]
    assert plan.work.decoding_sequences == 1
    assert [bench.batch.output_tokens(bench.entries[key]) for key in (1, 3)] == [3, 1]
    assert bench.plan().work.decoding_sequences == 2


def test_when_the_first_in_the_batch_preempts_itself_the_step_is_filled_again() -> None:
    bench = Bench(replace(SMALL, policy=SchedulingPolicy.PRIORITY))
    bench.arrive(1, 79, priority=9)
    bench.step()
    bench.arrive(2, 79, priority=1)
    bench.step()
    plan = bench.step()
    assert [entry.key for entry in plan.preempted] == [1]
    assert plan.work.decoding_sequences == 1


def test_a_prompt_that_begins_like_a_running_one_computes_only_the_rest() -> None:
    bench = Bench(replace(SMALL, prefix_caching=True))
    bench.arrive(1, 40, ids=(7, 8))
    bench.arrive(2, 50, ids=(7, 8, 9))
    plan = bench.plan()
    assert bench.pieces() == {1: 40, 2: 18}
    assert plan.work.attention_pairs == sum(range(1, 41)) + sum(range(33, 51))
    assert bench.batch.held_blocks == 3 + 2


def test_the_last_token_of_a_prompt_is_computed_even_when_all_of_it_is_cached() -> None:
    bench = Bench(replace(SMALL, prefix_caching=True))
    bench.arrive(1, 32, ids=(7, 8))
    bench.arrive(2, 32, ids=(7, 8))
    bench.plan()
    # A block is found as a whole or not at all.
    assert bench.pieces() == {1: 32, 2: 16}
