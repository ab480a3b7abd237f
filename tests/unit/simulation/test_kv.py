"""KV without a prefix cache: whole blocks, held and given back."""

from llmshed.simulation.kv import Allocation, Kv, KvBlocks
from llmshed.simulation.prefixes import PromptBlocks


def test_blocks_are_rounded_up_and_none_is_taken_that_does_not_exist() -> None:
    kv: Kv = KvBlocks(usable_blocks=10, block_tokens=16)
    assert kv.allocate(1, 17, None, 10) == Allocation(blocks=2, cached_tokens=0)
    assert (kv.held_blocks, kv.held_tokens, kv.held_by(1)) == (2, 32, 32)
    assert kv.allocate(2, 129, None, 10) is None
    assert kv.allocate(2, 128, None, 10) == Allocation(blocks=8, cached_tokens=0)
    assert (kv.occupied_blocks, kv.held_by(3)) == (10, 0)
    assert kv.check() == ()


def test_what_is_given_back_is_free_and_nothing_of_it_is_remembered() -> None:
    kv = KvBlocks(usable_blocks=10, block_tokens=1)
    prompt = PromptBlocks((1, 2, 3), 1)
    for key in range(3):
        assert kv.allocate(key, 10, prompt, 3) == Allocation(blocks=10, cached_tokens=0)
        kv.free(key)
        assert (kv.held_blocks, kv.occupied_blocks) == (0, 0)
    assert kv.check() == ()
