"""The trie of cached prefixes. Scenes and numbers of the first part are those of TGI's own tests of `radix.rs`."""

from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.radix import RadixTrie, Row, lay_out


def row(*ids: int, block_tokens: int = 1) -> Row:
    return lay_out(PromptBlocks(ids, 1), len(ids), block_tokens)


def found(trie: RadixTrie, *ids: int) -> int:
    return trie.find(row(*ids))[1]


def test_inserting_tells_how_much_was_there() -> None:
    trie = RadixTrie()
    assert trie.insert(row(0, 1, 2)) == 0
    assert trie.insert(row(0, 1, 2)) == 3
    assert trie.insert(row(1, 2, 3)) == 0
    assert trie.insert(row(0, 1, 2, 3, 4)) == 3
    assert trie.insert(row(0, 1, 2, 3, 5, 6, 7)) == 4
    assert trie.blocks == 3 + 3 + 2 + 3
    assert trie.check() == ()


def test_inserting_goes_by_whole_blocks() -> None:
    trie = RadixTrie()
    assert trie.insert(row(0, 1, 2, 3, block_tokens=2)) == 0
    assert trie.insert(row(0, 1, 2, 3, block_tokens=2)) == 2
    assert trie.insert(row(1, 2, 3, 4, block_tokens=2)) == 0
    assert trie.insert(row(0, 1, 2, 3, 4, 5, block_tokens=2)) == 2
    assert trie.insert(row(0, 1, 3, 4, 5, 6, 7, 8, block_tokens=2)) == 1
    assert trie.check() == ()


def test_the_longest_prefix_is_found() -> None:
    trie = RadixTrie()
    for ids in ((0, 1, 2), (1, 2, 3), (0, 1, 2, 3, 4), (0, 1, 2, 3, 5, 6, 7)):
        trie.insert(row(*ids))
    assert found(trie, 0) == 1
    assert found(trie, 0, 1, 2) == 3
    assert found(trie, 1, 2, 3) == 3
    assert found(trie, 0, 1, 2, 3) == 4
    assert found(trie, 0, 1, 2, 3, 4) == 5
    assert found(trie, 0, 1, 2, 3, 5) == 5
    assert found(trie, 9) == 0


def test_leaves_go_in_the_order_of_their_last_use() -> None:
    trie = RadixTrie()
    for ids in ((0, 1, 2), (0, 1, 2, 3, 5, 6, 7), (0, 1, 2, 3, 4), (1, 2, 3)):
        trie.insert(row(*ids))
    assert trie.evict(1) == 1
    assert found(trie, 0, 1, 2, 3, 5, 6, 7) == 6
    assert (found(trie, 0, 1, 2, 3, 4), found(trie, 1, 2, 3)) == (5, 3)
    assert trie.evict(2) == 2
    assert found(trie, 0, 1, 2, 3, 5, 6, 7) == 4
    assert found(trie, 1, 2, 3) == 3
    assert trie.evict(3) == 3
    assert found(trie, 0, 1, 2, 3, 4) == 2
    assert trie.evict(10) == 5
    assert (trie.blocks, trie.check()) == (0, ())


def test_a_partial_match_goes_no_deeper() -> None:
    trie = RadixTrie()
    trie.insert(row(0, 1, 2))
    trie.insert(row(0, 1, 2, 3, 4, 5))
    assert trie.find(row(0, 1, 3, 4, 5)) == trie.find(row(0, 1))


def test_a_prompt_that_ends_within_a_longer_one_leaves_it_in_one_piece() -> None:
    trie = RadixTrie()
    trie.insert(row(0, 1, 2, 3))
    assert trie.insert(row(0, 1)) == 2
    trie.insert(row(8, 9))
    # Looking for the short one uses the long one whole, so that the other is the older.
    assert found(trie, 0, 1) == 2
    assert trie.evict(2) == 2
    assert (found(trie, 8, 9), found(trie, 0, 1, 2, 3)) == (0, 4)


def test_what_is_referred_to_stays_with_all_before_it_even_when_it_is_split() -> None:
    trie = RadixTrie()
    trie.insert(row(0, 1, 2, 3))
    node, blocks = trie.find(row(0, 1, 2, 9))
    trie.refer(node)
    trie.insert(row(0, 5))
    assert trie.evict(10) == 1
    assert blocks == 3
    assert found(trie, 0, 1, 2, 3) == 4
    trie.release(node)
    assert trie.evict(10) == 4
    assert trie.check() == ()


def test_a_prompt_nibbled_at_leaves_no_more_ids_than_twice_its_blocks() -> None:
    trie = RadixTrie()
    trie.insert(row(*range(1000)))
    for _ in range(900):
        trie.evict(1)
        node, blocks = trie.find(row(*range(1000)))
        assert len(node.ids) <= 2 * blocks
    assert found(trie, *range(1000)) == 100
    assert trie.insert(row(*range(200))) == 100
    assert trie.check() == ()


def test_a_prefix_in_very_many_pieces_is_walked_without_recursion() -> None:
    trie = RadixTrie()
    trie.insert(row(*range(1500)))
    # The longest first, so that each parts from the first piece only.
    for length in range(1499, 0, -1):
        assert trie.insert(row(*range(length), -1)) == length
    assert found(trie, *range(1500)) == 1500
    assert trie.evict(5000) == 1500 + 1499
    assert (trie.blocks, trie.check()) == (0, ())
