"""Decoding sequences moved together: blocks, ends and residency against counting one by one."""

from hypothesis import given
from hypothesis import strategies as st

from llmshed.simulation.sequences import Sequence
from llmshed.simulation.vllm.blocks import Holding
from llmshed.simulation.vllm.entry import VllmEntry
from llmshed.simulation.vllm.pack import DecodingPack


def decoding(key: int, input_tokens: int, output: int, ceiling: int = 1000) -> VllmEntry:
    entry = VllmEntry(Sequence(key, input_tokens, ceiling), input_tokens, ceiling, key, 0.0, Holding())
    entry.joined, entry.output_tokens, entry.computed_tokens = key, output, input_tokens + output - 1
    return entry


def pack_of(block_tokens: int, *entries: VllmEntry) -> DecodingPack:
    pack = DecodingPack(block_tokens)
    for entry in entries:
        pack.add(entry)
    return pack


def test_a_block_is_needed_when_the_computed_tokens_fill_their_blocks() -> None:
    # 16 tokens of prompt are computed and one token was produced: its place is the first of the second block.
    full, begun = decoding(1, 16, 1), decoding(2, 17, 1)
    pack = pack_of(16, full, begun)
    assert (pack.is_at_border(full), pack.is_at_border(begun)) == (True, False)
    assert pack.blocks_for(1) == 1
    # The second sequence has 17 computed; its 33rd token, the first of its third block, is that of step 16.
    assert [pack.blocks_for(steps) for steps in (15, 16, 17, 32, 33)] == [1, 2, 3, 4, 5]


@given(
    block=st.integers(1, 20),
    lengths=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 30)), min_size=1, max_size=12),
    passed=st.integers(0, 50),
    steps=st.integers(0, 90),
)
def test_blocks_of_any_number_of_steps_are_those_counted_one_by_one(
    block: int, lengths: list[tuple[int, int]], passed: int, steps: int
) -> None:
    pack = pack_of(block, *(decoding(key, *length) for key, length in enumerate(lengths)))
    pack.advance(passed)
    computed = [given_tokens + output - 1 + passed for given_tokens, output in lengths]
    blocks = sum(-(-(tokens + steps) // block) - -(-tokens // block) for tokens in computed)
    assert pack.blocks_for(steps) == blocks
    within = pack.steps_within(blocks)
    assert pack.blocks_for(within) <= blocks < pack.blocks_for(within + 1)


def test_sequences_end_at_their_last_token_and_together_in_the_order_in_which_they_joined() -> None:
    pack = pack_of(16, decoding(3, 10, 1, ceiling=9), decoding(1, 10, 1, ceiling=5), decoding(2, 10, 3, ceiling=7))
    assert pack.steps_to_first_end == 4
    pack.advance(4)
    assert [(entry.key, entry.output_tokens) for entry in pack.take_ended()] == [(1, 5), (2, 7)]
    assert (len(pack), pack.steps_to_first_end) == (1, 4)


def test_the_end_of_a_sequence_that_was_taken_out_is_forgotten() -> None:
    early, late = decoding(1, 10, 1, ceiling=5), decoding(2, 10, 1, ceiling=50)
    pack = pack_of(16, early, late)
    pack.remove(early)
    assert pack.steps_to_first_end == 49


def test_a_sequence_held_up_for_a_step_ends_a_step_later() -> None:
    slow, other = decoding(1, 10, 1, ceiling=5), decoding(2, 10, 1, ceiling=50)
    pack = pack_of(16, slow, other)
    pack.advance(1)
    pack.remove(slow)
    pack.advance(1)
    pack.add(slow)
    assert (pack.output_tokens(slow), pack.output_tokens(other)) == (2, 3)
    assert pack.steps_to_first_end == 3


def test_residency_grows_by_one_token_a_sequence_and_step() -> None:
    one, two = decoding(1, 100, 1), decoding(2, 50, 10)
    pack = pack_of(16, one, two)
    assert pack.resident_tokens == 101 + 60
    pack.advance(7)
    assert pack.resident_tokens == 161 + 14
    pack.remove(two)
    assert pack.resident_tokens == 108
    assert (two.output_tokens, two.computed_tokens, two.blocks) == (17, 66, 5)
