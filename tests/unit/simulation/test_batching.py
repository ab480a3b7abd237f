"""Who leaves the front of the queue, one rule at a time."""

from collections import deque

import pytest

from llmshed.simulation.batching import Joiners, take_from_front
from llmshed.simulation.cached_kv import CachedKv
from llmshed.simulation.kv import KvBlocks
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import Dropped
from llmshed.simulation.room import Room
from llmshed.simulation.sequences import Entry, Sequence


def entry(key: int, input_tokens: int, chunk: int = 10) -> Entry:
    return Entry(Sequence(key, input_tokens), input_tokens, chunk, chunk, key, 0.0)


def room(
    prefill: int = 1000, seats: int | None = None, least: int = 0, *, chunked: bool = True, guesses: int = 0
) -> Room:
    return Room(prefill, seats, least, chunked, guesses)


def test_entries_join_together_while_the_budget_lasts_and_the_last_is_cut() -> None:
    queue = deque([entry(1, 400), entry(2, 400), entry(3, 400), entry(4, 1)])
    joiners = take_from_front(queue, KvBlocks(10_000, 1), room())
    assert [(e.key, e.next_prefill_tokens) for e in joiners.entries] == [(1, 400), (2, 400), (3, 200)]
    assert [e.key for e in queue] == [4]


def test_without_pieces_a_prompt_joins_whole_or_not_at_all() -> None:
    kv = KvBlocks(10_000, 1)
    queue = deque([entry(1, 400), entry(2, 400), entry(3, 400)])
    joiners = take_from_front(queue, kv, room(chunked=False))
    assert [e.key for e in joiners.entries] == [1, 2]
    assert kv.held_blocks == 2 * 409
    assert not joiners.blocked


def test_a_head_without_kv_blocks_smaller_ones() -> None:
    queue = deque([entry(1, 400), entry(2, 1)])
    joiners = take_from_front(queue, KvBlocks(408, 1), room())
    assert joiners.entries == ()
    assert joiners.blocked
    assert len(queue) == 2


def test_kv_is_needed_for_input_ceiling_and_guesses_less_one() -> None:
    for blocks, fits in ((411, False), (412, True)):
        joiners = take_from_front(deque([entry(1, 400)]), KvBlocks(blocks, 1), room(guesses=3))
        assert bool(joiners.entries) is fits


@pytest.mark.parametrize("none", [room(0), room(seats=0)])
def test_without_budget_or_seats_nobody_looks_so_that_who_left_is_not_found(none: Room) -> None:
    left = entry(1, 400)
    left.abandoned = True
    queue = deque([left, entry(2, 1)])
    assert take_from_front(queue, KvBlocks(10_000, 1), none) == Joiners(blocked=True)
    assert [e.key for e in queue] == [1, 2]


def test_who_left_in_front_is_found_by_a_look_that_takes_nobody() -> None:
    left = entry(1, 400)
    left.abandoned = True
    queue = deque([left, entry(2, 400)])
    joiners = take_from_front(queue, KvBlocks(400, 1), room())
    assert joiners == Joiners(dropped=(Dropped(1, while_queued=True),), blocked=True)
    assert [e.key for e in queue] == [2]


def test_a_queue_of_abandoned_ones_empties_and_blocks_nobody() -> None:
    left = entry(1, 400)
    left.abandoned = True
    joiners = take_from_front(deque([left]), KvBlocks(10, 1), room())
    assert not joiners.blocked


def test_seats_end_the_search() -> None:
    queue = deque([entry(key, 1) for key in range(5)])
    assert len(take_from_front(queue, KvBlocks(10_000, 1), room(seats=2)).entries) == 2
    assert take_from_front(queue, KvBlocks(10_000, 1), room(seats=0)).blocked


def test_too_few_are_put_back_in_their_order() -> None:
    kv = KvBlocks(850, 1)
    queue = deque([entry(key, 400) for key in range(3)])
    joiners = take_from_front(queue, kv, room(2000, least=3, chunked=False))
    assert (joiners.entries, joiners.blocked, kv.held_blocks) == ((), False, 0)
    assert [(e.key, e.blocks, e.next_prefill_tokens) for e in queue] == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    assert take_from_front(queue, kv, room(2000, least=4, chunked=False)).entries == ()


def test_what_the_cache_has_is_not_worked_through_again() -> None:
    kv = CachedKv(10_000, 1)
    prompt = PromptBlocks(tuple(range(400)), 1)
    kv.allocate(0, 500, prompt, 400)
    kv.free(0)
    whole, part = entry(1, 400), entry(2, 600)
    whole.prompt = part.prompt = prompt
    joiners = take_from_front(deque([whole, part]), kv, room())
    # All of a prompt may be cached; one token of it is computed all the same.
    assert [(e.cached_tokens, e.next_prefill_tokens) for e in joiners.entries] == [(399, 1), (400, 200)]


def with_ids(key: int, input_tokens: int) -> Entry:
    made = entry(key, input_tokens)
    made.prompt = PromptBlocks(tuple(1000 * key + place for place in range(input_tokens)), 1)
    return made


@pytest.mark.parametrize("chunked", [True, False])
def test_a_head_that_finds_the_budget_spent_leaves_its_prompt_in_the_cache(*, chunked: bool) -> None:
    # `queue.rs` allocates before it looks at the budget, and giving an allocation back stores its prompt.
    kv = CachedKv(10_000, 1)
    queue = deque([with_ids(1, 1000), with_ids(2, 300), with_ids(3, 300)])
    assert [e.key for e in take_from_front(queue, kv, room(chunked=chunked)).entries] == [1]
    assert (kv.held_blocks, kv.occupied_blocks) == (1009, 1309)
    joiners = take_from_front(queue, kv, room(chunked=chunked))
    assert [(e.key, e.cached_tokens, e.next_prefill_tokens) for e in joiners.entries] == [(2, 299, 1), (3, 0, 300)]


def test_what_was_put_back_with_a_prompt_for_the_cache_may_join_with_the_next_look() -> None:
    kv = CachedKv(10_000, 1)
    queue = deque([with_ids(key, 400) for key in range(3)])
    assert take_from_front(queue, kv, room(least=3, chunked=False)) == Joiners(unsettled=True)
    # Two of the prompts, and the third that broke the budget, now lie in the cache.
    assert len(take_from_front(queue, kv, room(least=3, chunked=False)).entries) == 3


def test_what_was_put_back_without_a_cache_will_not_join_by_being_looked_at_again() -> None:
    queue = deque([entry(key, 400) for key in range(3)])
    for _ in range(2):
        assert take_from_front(queue, KvBlocks(10_000, 1), room(least=3, chunked=False)) == Joiners()
