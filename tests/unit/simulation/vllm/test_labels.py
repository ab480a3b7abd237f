import pytest

from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.radix import lay_out
from llmshed.simulation.vllm.labels import Labels, labels_of


def labels(*ids: int, unit: int, tokens: int) -> Labels:
    """The labels of a prompt in blocks of 4 tokens."""
    return labels_of(lay_out(PromptBlocks(ids, unit), tokens, 4))


def test_blocks_within_one_id_stand_in_one_row_and_carry_it_alike() -> None:
    made = labels(7, 8, 9, unit=8, tokens=21)
    assert made.blocks == 5
    assert [made.of(block) for block in range(5)] == [(7,), (7,), (8,), (8,), (9,)]
    assert [made.end(block) for block in range(5)] == [2, 2, 4, 4, 5]


@pytest.mark.parametrize(
    ("unit", "expected"),
    [(1, [(0, 1, 2, 3), (4, 5, 6, 7)]), (3, [(0, 1), (1, 2), (2, 3)]), (6, [(0,), (0, 1), (1,)])],
)
def test_a_block_that_several_ids_reach_into_carries_them_all(unit: int, expected: list[tuple[int, ...]]) -> None:
    made = labels(*range(8), unit=unit, tokens=4 * len(expected))
    assert [made.of(block) for block in range(made.blocks)] == expected
    assert [made.end(block) for block in range(made.blocks)] == list(range(1, made.blocks + 1))


def test_a_prompt_of_less_than_a_block_has_no_labels() -> None:
    made = labels(7, unit=8, tokens=3)
    assert (made.blocks, made.labels) == (0, ())


def test_ids_of_another_size_begin_elsewhere() -> None:
    assert labels(7, unit=8, tokens=8).origin != labels(7, unit=4, tokens=4).origin
