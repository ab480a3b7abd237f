"""How many steps alike follow each other, and what taking a sequence out leaves behind."""

from dataclasses import replace

from llmshed.simulation.sequences import Sequence
from llmshed.simulation.vllm.batch import Batch
from llmshed.simulation.vllm.blocks import Holding
from llmshed.simulation.vllm.entry import VllmEntry
from llmshed.simulation.vllm.line import WaitingLine
from llmshed.simulation.vllm.parameters import VllmParameters

SMALL = VllmParameters(
    max_num_seqs=4, max_num_batched_tokens=100, max_model_len=160, kv_tokens=11 * 16, prefix_caching=False
)
"""Ten usable blocks of 16 tokens."""


def started(*lengths: tuple[int, int], parameters: VllmParameters = SMALL) -> tuple[Batch, WaitingLine]:
    """A batch whose sequences, of so much input and output, have done their prompts and produced one token each."""
    batch, line = Batch(parameters), WaitingLine(parameters.policy)
    for key, (input_tokens, output) in enumerate(lengths):
        line.join(VllmEntry(Sequence(key, input_tokens, output), input_tokens, output, key, 0.0, Holding()))
    plan = batch.plan(line, 3.0)
    batch.pass_steps(plan.steps, more=False)
    batch.settle()
    return batch, line


def test_a_run_of_decodes_lasts_until_the_first_end() -> None:
    batch, line = started((10, 30), (10, 20))
    assert batch.plan(line, 4.0).steps == 19


def test_a_run_of_decodes_ends_before_a_block_could_be_lacking() -> None:
    batch, line = started((40, 100), (40, 100))
    # 3 blocks each, 4 free. At 48 tokens each takes its fourth, at 64 its fifth; there is none for 80.
    plan = batch.plan(line, 4.0)
    assert plan.steps == 40
    batch.pass_steps(plan.steps, more=False)
    assert batch.held_blocks == 10
    batch.settle()
    assert [entry.key for entry in batch.plan(line, 5.0).preempted] == [1]


def test_blocks_are_taken_with_the_step_that_needs_them() -> None:
    batch, line = started((40, 100), (43, 100))
    batch.plan(line, 4.0)
    held = []
    for _ in range(9):
        held.append(batch.held_blocks)
        batch.pass_steps(1, more=True)
    # Step 1 is the 41st and 44th token, step 6 the 49th of the second, step 9 the 49th of the first.
    assert held == [6, 6, 6, 6, 6, 7, 7, 7, 8]
    assert batch.check() == ()


def test_a_step_with_a_prompt_stands_alone() -> None:
    batch, line = started((10, 30))
    line.join(VllmEntry(Sequence(9, 10, 5), 10, 5, 9, 0.0, Holding()))
    plan = batch.plan(line, 4.0)
    assert (plan.steps, plan.joined) == (1, 1)


def test_the_first_run_is_when_a_sequence_started() -> None:
    batch, _ = started((10, 30))
    assert [entry.started_at for entry in batch] == [3.0]


def test_a_prompt_that_gives_its_only_token_ends_at_once() -> None:
    batch, _ = started((10, 1))
    assert [entry.key for entry in batch.take_ended()] == [0]
    assert (len(batch), batch.held_blocks) == (0, 0)


def test_taking_a_sequence_out_frees_its_blocks() -> None:
    batch, _ = started((40, 100), (10, 100))
    first, second = batch
    batch.remove(first)
    assert batch.held_blocks == 1
    batch.remove(second)
    assert (batch.held_blocks, batch.check()) == (0, ())


def test_a_broken_book_is_told() -> None:
    batch, _ = started((40, 100), parameters=replace(SMALL, prefix_caching=True))
    (entry,) = batch
    entry.began_at_step -= 100
    assert len(batch.check()) == 2
