"""KV with the prefix cache. The scenes and numbers of the first part are those of TGI's own tests of `radix.rs`."""

import pytest

from llmshed.simulation.cached_kv import CachedKv
from llmshed.simulation.kv import Allocation, Kv
from llmshed.simulation.prefixes import PromptBlocks


def tokens(*ids: int) -> PromptBlocks:
    return PromptBlocks(ids, 1)


def take(kv: CachedKv, key: int, size: int, *ids: int) -> Allocation | None:
    allocation = kv.allocate(key, size, tokens(*ids), len(ids))
    assert kv.check() == ()
    return allocation


def give_back(kv: CachedKv, *keys: int) -> None:
    for key in keys:
        kv.free(key)
        assert kv.check() == ()


def test_it_can_stand_wherever_a_kv_can() -> None:
    kv: Kv = CachedKv(11, 2)
    assert kv.occupied_blocks == 0


def test_a_prompt_of_whole_blocks_is_found_again() -> None:
    kv = CachedKv(11, 2)
    assert take(kv, 1, 8, 0, 1, 2, 3) == Allocation(blocks=4, cached_tokens=0)
    give_back(kv, 1)
    assert take(kv, 2, 8, 0, 1, 2, 3) == Allocation(blocks=4, cached_tokens=4)


def test_of_a_prompt_that_ends_within_a_block_the_whole_blocks_are_found() -> None:
    kv = CachedKv(11, 2)
    assert take(kv, 1, 7, 0, 1, 2) == Allocation(blocks=4, cached_tokens=0)
    give_back(kv, 1)
    assert take(kv, 2, 7, 0, 1, 2) == Allocation(blocks=4, cached_tokens=2)


def test_two_that_run_at_once_do_not_share_and_the_second_copy_is_given_back() -> None:
    kv = CachedKv(9, 1)
    assert take(kv, 1, 4, 0, 1, 2, 3) == Allocation(4, 0)
    assert take(kv, 2, 4, 0, 1, 2, 3) == Allocation(4, 0)
    give_back(kv, 2, 1)
    assert take(kv, 3, 4, 0, 1, 2, 3) == Allocation(4, 4)
    assert kv.occupied_blocks == 4


def test_prompts_that_part_midway_keep_what_they_share_once() -> None:
    kv = CachedKv(19, 1)
    take(kv, 1, 4, 0, 1)
    give_back(kv, 1)
    assert take(kv, 2, 8, 0, 1, 2, 3, 4, 5) == Allocation(8, 2)
    assert take(kv, 3, 8, 0, 1, 2, 3, 6, 7) == Allocation(8, 2)
    give_back(kv, 3, 2)
    assert kv.occupied_blocks == 19 - 11
    assert take(kv, 4, 6, 0, 1, 2, 3, 4, 5) == Allocation(6, 6)
    assert take(kv, 5, 6, 0, 1, 2, 3, 6, 7) == Allocation(6, 6)
    assert kv.occupied_blocks == 19 - 11


def test_a_shared_prefix_counts_once_for_each_that_holds_it() -> None:
    kv = CachedKv(10, 1)
    take(kv, 1, 8, 0, 1, 2, 3, 4, 5, 6, 7)
    give_back(kv, 1)
    for key in (2, 3):
        assert take(kv, key, 9, 0, 1, 2, 3, 4, 5, 6, 7) == Allocation(9, 8)
    assert (kv.held_blocks, kv.held_tokens, kv.occupied_blocks) == (18, 18, 10)
    assert kv.held_by(2) == 9


def test_the_prefix_used_longest_ago_makes_room() -> None:
    kv = CachedKv(6, 1)
    take(kv, 1, 3, 0, 1, 2)
    take(kv, 2, 3, 4, 5, 6)
    give_back(kv, 2, 1)
    assert take(kv, 3, 3, 7, 8, 9) == Allocation(3, 0)
    give_back(kv, 3)
    assert take(kv, 4, 3, 0, 1, 2) == Allocation(3, 3)


def test_a_prefix_that_a_running_sequence_found_is_never_given_up() -> None:
    kv = CachedKv(6, 1)
    take(kv, 1, 4, 0, 1, 2, 3)
    give_back(kv, 1)
    take(kv, 2, 5, 0, 1, 2, 3)
    assert take(kv, 3, 2, 8, 9) is None
    give_back(kv, 2)
    assert take(kv, 3, 5, 8, 9) == Allocation(5, 0)
    assert take(kv, 4, 4, 0, 1, 2, 3) is None


def test_looking_for_room_in_vain_still_costs_what_was_cached() -> None:
    kv = CachedKv(6, 1)
    take(kv, 1, 2, 0, 1)
    take(kv, 2, 3, 4, 5)
    give_back(kv, 1)
    assert take(kv, 3, 5, 7, 8) is None
    assert kv.cached_blocks == 0
    give_back(kv, 2)
    assert take(kv, 4, 2, 0, 1) == Allocation(2, 0)


def test_a_long_prefix_is_cut_from_its_end() -> None:
    kv = CachedKv(6, 1)
    take(kv, 1, 6, 0, 1, 2, 3, 4, 5)
    give_back(kv, 1)
    take(kv, 2, 2, 8, 9)
    give_back(kv, 2)
    assert take(kv, 3, 6, 0, 1, 2, 3, 4, 5) == Allocation(6, 4)


def test_a_request_without_ids_neither_asks_nor_fills_the_cache() -> None:
    kv = CachedKv(6, 1)
    assert kv.allocate(1, 4, None, 4) == Allocation(4, 0)
    kv.free(1)
    assert (kv.cached_blocks, kv.occupied_blocks) == (0, 0)


def test_ids_of_large_units_are_found_in_small_blocks_up_to_the_prompts_end() -> None:
    kv = CachedKv(2000, 1)
    take_blocks = PromptBlocks((71, 72), 512)
    assert kv.allocate(1, 600, take_blocks, 600) == Allocation(600, 0)
    kv.free(1)
    assert kv.cached_blocks == 600
    longer = PromptBlocks((71, 72, 73), 512)
    assert kv.allocate(2, 1500, longer, 1400) == Allocation(1500, 600)
    kv.free(2)
    assert kv.allocate(3, 1500, longer, 1400) == Allocation(1500, 1400)
    kv.free(3)
    assert kv.allocate(4, 1500, PromptBlocks((71, 99), 512), 1024) == Allocation(1500, 512)
    assert kv.check() == ()


def test_only_blocks_that_equal_ids_cover_wholly_are_found() -> None:
    kv = CachedKv(100, 48)
    kv.allocate(1, 1536, PromptBlocks((1, 2, 3), 512), 1536)
    kv.free(1)
    # One equal id covers 512 tokens: ten blocks of 48, and part of the eleventh.
    assert kv.allocate(2, 1536, PromptBlocks((1, 9, 9), 512), 1536) == Allocation(32, 480)
    kv.free(2)
    assert kv.cached_blocks == 10 + 22 + 22
    assert kv.check() == ()


def test_equal_ids_of_different_units_are_different_prompts() -> None:
    kv = CachedKv(100, 1)
    kv.allocate(1, 8, PromptBlocks((1, 2), 4), 8)
    kv.free(1)
    assert kv.allocate(2, 2, PromptBlocks((1, 2), 1), 2) == Allocation(2, 0)


def test_a_unit_of_no_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="unit_tokens is 0; accepted are whole numbers from 1"):
        CachedKv(10, 1).allocate(1, 4, PromptBlocks((1,), 0), 4)
