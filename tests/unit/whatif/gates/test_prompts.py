"""What prompts cost and what they share, counted by hand or by a set."""

from hypothesis import given
from hypothesis import strategies as st

from llmshed.simulation.prefixes import PromptBlocks
from llmshed.whatif.gates.prompts import PrefixesOnBoard, PromptWork, prompt_work


def test_each_token_that_is_computed_attends_to_all_before_it_and_to_itself() -> None:
    assert prompt_work(4) == PromptWork(4, 1 + 2 + 3 + 4)
    assert prompt_work(4, cached_tokens=2) == PromptWork(2, 3 + 4)
    assert prompt_work(4, cached_tokens=2, copies=3) == PromptWork(6, 21)
    assert prompt_work(1) + prompt_work(2) == PromptWork(3, 4)


def test_ids_of_another_unit_are_other_ids() -> None:
    board = PrefixesOnBoard()
    board.join(1, PromptBlocks((1, 2, 3), 16))
    assert board.added_tokens(PromptBlocks((1, 2), 16)) == 0
    assert board.added_tokens(PromptBlocks((1, 2, 4, 3), 16)) == 32
    assert board.added_tokens(PromptBlocks((1, 2), 1)) == 2
    assert board.added_tokens(None) == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.none() | st.lists(st.integers(0, 1), min_size=1, max_size=6).map(tuple)),
        max_size=30,
    )
)
def test_tokens_are_those_of_the_union_of_all_prefixes_on_board(
    moves: list[tuple[int, tuple[int, ...] | None]],
) -> None:
    board = PrefixesOnBoard()
    there: dict[int, tuple[int, ...] | None] = {}
    for key, ids in moves:
        if key in there:
            board.leave(key)
            del there[key]
        else:
            board.join(key, None if ids is None else PromptBlocks(ids, 16))
            there[key] = ids
        union = {ids[: end + 1] for ids in there.values() if ids is not None for end in range(len(ids))}
        assert board.tokens == 16 * len(union)
