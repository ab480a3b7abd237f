from llmshed.simulation.continuing import prompt_of_chunk
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.sequences import Sequence


def common_ids(one: PromptBlocks | None, other: PromptBlocks | None) -> int:
    assert one is not None
    assert other is not None
    count = 0
    for left, right in zip(one.ids, other.ids, strict=False):
        if left != right:
            break
        count += 1
    return count


def test_the_first_chunk_looks_up_the_prompt_as_it_came() -> None:
    prompt = PromptBlocks((5, 6, 7), 1)
    assert prompt_of_chunk(Sequence(1, 3, blocks=prompt), 0) == prompt


def test_a_prompt_that_is_not_to_be_cached_never_is() -> None:
    assert prompt_of_chunk(Sequence(1, 3), 0) is None
    assert prompt_of_chunk(Sequence(1, 3), 1024) is None


def test_a_later_chunk_shares_all_of_the_one_before() -> None:
    sequence = Sequence(9, 3, blocks=PromptBlocks((5, 6, 7), 1))
    second, third = prompt_of_chunk(sequence, 1024), prompt_of_chunk(sequence, 2048)
    assert common_ids(second, sequence.blocks) == 3
    assert common_ids(third, second) == 3 + 1024
    assert third is not None
    assert len(third.ids) == 3 + 2048


def test_the_same_prompt_of_two_sequences_shares_no_output() -> None:
    prompt = PromptBlocks((5, 6, 7), 1)
    second = prompt_of_chunk(Sequence(1, 3, blocks=prompt), 1024)
    other = prompt_of_chunk(Sequence(2, 3, blocks=prompt), 1024)
    assert common_ids(second, other) == 3


def test_larger_units_end_where_a_whole_one_does() -> None:
    # 1,000 tokens fill one unit of 512; 488 more begin the second, which output completes.
    sequence = Sequence(1, 1000, blocks=PromptBlocks((77,), 512))
    second = prompt_of_chunk(sequence, 1024)
    assert second is not None
    assert second.ids[0] == 77
    assert len(second.ids) == (1000 + 1024) // 512
    assert len(set(second.ids)) == len(second.ids)


def test_truncation_looks_up_the_last_tokens() -> None:
    prompt = PromptBlocks((1, 2, 3, 4, 5), 1)
    assert prompt_of_chunk(Sequence(1, 5, truncate_tokens=2, blocks=prompt), 0) == PromptBlocks((4, 5), 1)
    assert prompt_of_chunk(Sequence(1, 5, truncate_tokens=5, blocks=prompt), 0) == prompt


def test_truncation_of_what_is_not_known_token_by_token_looks_up_nothing() -> None:
    assert prompt_of_chunk(Sequence(1, 1024, truncate_tokens=600, blocks=PromptBlocks((1, 2), 512)), 0) is None
    assert prompt_of_chunk(Sequence(1, 5, truncate_tokens=2, blocks=PromptBlocks((1, 2, 3), 1)), 0) is None
