"""The block pool: who finds what, and what is forgotten first."""

from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.radix import lay_out
from llmshed.simulation.vllm.blocks import BlockPool, Found, Holding


def prompt(*ids: int, unit: int = 4) -> Holding:
    """A sequence whose prompt is these ids, in blocks of 4 tokens."""
    return Holding(lay_out(PromptBlocks(ids, unit), len(ids) * unit, 4))


def start(pool: BlockPool, holding: Holding, blocks: int) -> Found:
    """Let a sequence find what there is and take the rest of its blocks, all of them full and of its prompt."""
    found = pool.find(holding, blocks)
    pool.claim(holding, found)
    pool.take(blocks - found.blocks)
    pool.publish(holding, blocks)
    return found


def test_a_prompt_is_found_while_it_runs_and_costs_its_blocks_once() -> None:
    pool = BlockPool(10, caching=True)
    first, second = prompt(1, 2, 3), prompt(1, 2, 9)
    start(pool, first, 3)
    found = start(pool, second, 3)
    assert (found.blocks, found.idle) == (2, 0)
    assert pool.held == 4
    assert pool.check([(first, 3), (second, 3)]) == ()


def test_a_prompt_is_found_after_its_end_until_its_blocks_are_taken() -> None:
    pool = BlockPool(4, caching=True)
    first = prompt(1, 2)
    start(pool, first, 2)
    pool.release(first, 2, known_blocks=0)
    assert pool.free == 4
    found = pool.find(prompt(1, 2), 2)
    assert (found.blocks, found.idle) == (2, 2)
    pool.take(3)
    assert pool.find(prompt(1, 2), 2).blocks == 1, "two that never knew anything go first, then the last of the prompt"
    pool.take(1)
    assert pool.find(prompt(1, 2), 2).blocks == 0


def test_what_is_held_is_never_forgotten() -> None:
    pool = BlockPool(4, caching=True)
    first, second = prompt(1, 2), prompt(1, 2)
    start(pool, first, 2)
    start(pool, second, 2)
    pool.release(first, 2, known_blocks=0)
    pool.take(2)
    assert pool.find(prompt(1, 2), 2).blocks == 2
    assert pool.free == 0


def test_blocks_that_lie_free_longest_are_forgotten_first() -> None:
    pool = BlockPool(4, caching=True)
    old, new = prompt(1, 2), prompt(3, 4)
    start(pool, old, 2)
    start(pool, new, 2)
    pool.release(old, 2, known_blocks=0)
    pool.release(new, 2, known_blocks=0)
    pool.take(2)
    assert pool.find(prompt(1, 2), 2).blocks == 0
    assert pool.find(prompt(3, 4), 2).blocks == 2


def test_finding_moves_a_prompt_to_the_end_of_the_line() -> None:
    pool = BlockPool(4, caching=True)
    old, new, again = prompt(1, 2), prompt(3, 4), prompt(1, 2)
    start(pool, old, 2)
    start(pool, new, 2)
    pool.release(old, 2, known_blocks=0)
    pool.release(new, 2, known_blocks=0)
    start(pool, again, 2)
    pool.release(again, 2, known_blocks=0)
    pool.take(2)
    assert pool.find(prompt(1, 2), 2).blocks == 2
    assert pool.find(prompt(3, 4), 2).blocks == 0


def test_a_preempted_sequence_finds_what_nobody_took_from_the_front() -> None:
    pool = BlockPool(10, caching=True)
    victim = Holding()
    pool.take(6)
    pool.release(victim, 6, known_blocks=5)
    assert pool.find(victim, 9).blocks == 5
    assert pool.find(victim, 3).blocks == 3
    # Four blocks never held anything and the sixth was not full: they go first, then the fifth.
    pool.take(6)
    found = pool.find(victim, 9)
    assert (found.blocks, found.idle) == (4, 4)
    pool.claim(victim, found)
    assert (pool.held, pool.free) == (10, 0)


def test_what_a_preempted_sequence_left_is_found_by_nobody_else() -> None:
    pool = BlockPool(10, caching=True)
    pool.take(6)
    pool.release(Holding(), 6, known_blocks=6)
    assert pool.find(Holding(), 6).blocks == 0


def test_what_was_left_counts_only_behind_the_prompt_that_it_followed() -> None:
    pool = BlockPool(6, caching=True)
    victim = prompt(1, 2)
    start(pool, victim, 2)
    pool.take(2)
    pool.release(victim, 4, known_blocks=4)
    assert pool.find(victim, 4).blocks == 4
    pool.take(2 + 2 + 1)
    assert pool.find(victim, 4).blocks == 1, "two of its own and the second of its prompt are gone"


def test_without_caching_nothing_is_found() -> None:
    pool = BlockPool(10, caching=False)
    first = prompt(1, 2)
    start(pool, first, 2)
    assert start(pool, prompt(1, 2), 2).blocks == 0
    pool.release(first, 2, known_blocks=2)
    assert pool.find(first, 2).blocks == 0
    assert pool.held == 2


def test_ids_of_another_size_are_other_ids() -> None:
    pool = BlockPool(10, caching=True)
    start(pool, prompt(1, 2), 2)
    assert pool.find(prompt(1, unit=8), 2).blocks == 0


def test_one_id_may_stand_for_several_blocks() -> None:
    pool = BlockPool(10, caching=True)
    start(pool, prompt(1, 2, unit=8), 4)
    assert pool.find(prompt(1, 3, unit=8), 4).blocks == 2


def test_a_prompt_computed_twice_stays_private_the_second_time() -> None:
    pool = BlockPool(10, caching=True)
    first, second = prompt(1, 2), prompt(1, 2)
    pool.take(4)
    pool.publish(first, 2)
    pool.publish(second, 2)
    assert pool.check([(first, 2), (second, 2)]) == ()
    pool.release(second, 2, known_blocks=0)
    pool.release(first, 2, known_blocks=0)
    assert pool.held == 0
    assert pool.find(prompt(1, 2), 2).blocks == 2


def test_what_was_published_for_a_step_that_is_called_off_is_not_found() -> None:
    pool = BlockPool(10, caching=True)
    victim = prompt(1, 2, 3)
    start(pool, victim, 3)
    pool.unpublish(victim, 1)
    pool.release(victim, 3, known_blocks=1)
    assert pool.find(prompt(1, 2, 3), 3).blocks == 1
    assert pool.check([]) == ()


def test_a_wrong_count_is_told() -> None:
    pool = BlockPool(10, caching=True)
    pool.take(3)
    assert pool.check([]) == ("3 KV blocks are counted, 0 are held",)


def test_who_needs_the_first_blocks_of_an_id_only_holds_no_more_than_those() -> None:
    pool = BlockPool(20, caching=True)
    first, second = prompt(1, 2, unit=32), prompt(1, 2, unit=32)
    start(pool, first, 16)
    pool.release(first, 16, known_blocks=0)
    found = pool.find(second, 11)
    assert (found.blocks, found.idle) == (11, 11)
    pool.claim(second, found)
    assert pool.held == 11
    assert pool.check([(second, 11)]) == ()
    # The five behind them are still known, and stand in the line after the four that nobody ever used.
    assert pool.find(prompt(1, 2, unit=32), 16).blocks == 16
    pool.take(4 + 2)
    assert pool.find(prompt(1, 2, unit=32), 16).blocks == 14


def test_parting_blocks_changes_nothing_for_who_holds_them_all() -> None:
    pool = BlockPool(20, caching=True)
    first, second = prompt(1, unit=64), prompt(1, unit=64)
    start(pool, first, 16)
    start(pool, second, 5)
    assert pool.held == 16
    assert pool.check([(first, 16), (second, 5)]) == ()
    pool.release(first, 16, known_blocks=0)
    assert pool.held == 5
    start(pool, first, 16)
    assert pool.held == 16
    assert pool.check([(first, 16), (second, 5)]) == ()


def test_an_id_that_is_worked_through_in_pieces_is_found_up_to_where_that_came() -> None:
    pool = BlockPool(40, caching=True)
    first = prompt(1, 1, unit=64)
    pool.take(20)
    for full in (3, 3, 10, 20):
        pool.publish(first, full)
        assert pool.find(prompt(1, 1, unit=64), 32).blocks == full
    pool.unpublish(first, 7)
    assert pool.find(prompt(1, 1, unit=64), 32).blocks == 7
    assert pool.check([(first, 20)]) == ()


def test_a_long_prompt_of_few_ids_is_gone_through_by_its_ids() -> None:
    pool = BlockPool(2000, caching=True)
    start(pool, prompt(1, 2, unit=4000), 2000)
    found = pool.find(prompt(1, 2, unit=4000), 2000)
    assert (found.blocks, len(found.shared)) == (2000, 2)
