import hashlib

import pytest

from llmshed.tokenizing.blocks import BLOCK_BYTES, MOST_BLOCKS, BlockHasher

KEY = b"0123456789abcdef"


def test_each_whole_block_is_named_and_chained_to_those_before() -> None:
    first, second = b"a" * BLOCK_BYTES, b"b" * BLOCK_BYTES
    one = hashlib.blake2b(first, key=KEY, digest_size=8).digest()
    two = hashlib.blake2b(one + second, key=KEY, digest_size=8).digest()
    assert BlockHasher(KEY).names(first + second + b"rest") == (one.hex(), two.hex())


def test_equal_beginnings_have_equal_names_up_to_the_first_difference() -> None:
    text = bytes(range(256)) * 40
    other = text[:5000] + b"!" + text[5001:]
    names, others = BlockHasher(KEY).names(text), BlockHasher(KEY).names(other)
    assert names[:4] == others[:4]
    assert not set(names[4:]) & set(others[4:])


def test_equal_blocks_at_different_places_have_different_names() -> None:
    names = BlockHasher(KEY).names(b"a" * BLOCK_BYTES * 5)
    assert len(set(names)) == 5


def test_another_key_gives_other_names_and_none_gives_none() -> None:
    text = b"a" * BLOCK_BYTES
    assert BlockHasher(KEY).names(text) != BlockHasher(KEY[::-1]).names(text)
    assert BlockHasher(b"").names(text) == ()


def test_short_text_has_no_names_and_long_text_no_more_than_the_most() -> None:
    assert BlockHasher(KEY).names(b"a" * (BLOCK_BYTES - 1)) == ()
    assert len(BlockHasher(KEY).names(b"a" * BLOCK_BYTES * (MOST_BLOCKS + 9))) == MOST_BLOCKS


@pytest.mark.parametrize("length", [1, 15, 65])
def test_a_key_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="16 to 64"):
        BlockHasher(b"k" * length)
