"""The rule that finds conversations by the prefixes of their prompts."""

from llmshed.workload.readers.sessions import MOST_REMEMBERED, WITHIN_SECONDS, SessionFinder


def test_a_prompt_that_begins_with_all_whole_blocks_of_an_earlier_one_continues_it() -> None:
    finder = SessionFinder()
    first = finder.session(0.0, (0, 1, 2, 90), whole_blocks=3)
    assert finder.session(10.0, (0, 1, 2, 3, 91), whole_blocks=4) == first
    assert finder.session(20.0, (0, 1, 2, 3, 4), whole_blocks=5) == first


def test_a_shared_first_block_alone_makes_no_conversation() -> None:
    finder = SessionFinder()
    opened = {finder.session(0.0, (0, number), whole_blocks=1) for number in range(5)}
    opened |= {finder.session(1.0, (0, number, 100 + number), whole_blocks=1) for number in range(5)}
    assert len(opened) == 10


def test_a_prompt_that_leaves_the_way_opens_its_own() -> None:
    finder = SessionFinder()
    first = finder.session(0.0, (0, 1, 2), whole_blocks=3)
    assert finder.session(1.0, (0, 1, 7, 8), whole_blocks=4) != first


def test_ids_that_only_end_alike_are_no_prefix() -> None:
    finder = SessionFinder()
    first = finder.session(0.0, (0, 1, 2), whole_blocks=3)
    assert finder.session(1.0, (5, 6, 2, 3), whole_blocks=4) != first


def test_of_several_the_longest_is_continued() -> None:
    finder = SessionFinder()
    finder.session(0.0, (0, 1), whole_blocks=2)
    other = finder.session(0.0, (5, 6, 7), whole_blocks=3)
    short = finder.session(1.0, (0, 1, 2), whole_blocks=3)
    assert finder.session(2.0, (5, 6, 7, 8), whole_blocks=4) == other
    assert finder.session(3.0, (0, 1, 2, 9), whole_blocks=4) == short
    assert short != other


def test_a_conversation_ends_after_half_an_hour_of_silence() -> None:
    finder = SessionFinder()
    first = finder.session(0.0, (0, 1), whole_blocks=2)
    assert finder.session(WITHIN_SECONDS, (0, 1, 2), whole_blocks=3) == first
    assert finder.session(2 * WITHIN_SECONDS, (0, 1, 2, 3), whole_blocks=4) == first
    assert finder.session(3 * WITHIN_SECONDS + 1, (0, 1, 2, 3, 4), whole_blocks=5) != first


def test_no_more_prompts_are_remembered_than_allowed() -> None:
    finder = SessionFinder()
    for number in range(MOST_REMEMBERED + 10):
        finder.session(0.0, (0, number), whole_blocks=2)
    assert len(finder._prompts) == MOST_REMEMBERED
