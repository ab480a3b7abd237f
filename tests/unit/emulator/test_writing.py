from statistics import mean

import pytest

from llmshed.emulator.vocabulary import Vocabulary
from llmshed.emulator.writing import Writer, made_up_logprob
from llmshed.simulation.sequences import FinishReason
from llmshed.tokenizing.load import find


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(find("embedded"))


def test_the_same_prompt_and_seed_give_the_same_text(vocabulary: Vocabulary) -> None:
    first, second = (Writer(vocabulary, 7, 50).script("Why?", None) for _ in range(2))
    assert first.text(200) == second.text(200)
    assert first.natural_end == second.natural_end


def test_another_seed_prompt_or_copy_gives_another_text(vocabulary: Vocabulary) -> None:
    writer = Writer(vocabulary, 7, None)
    texts = {
        writer.script("Why?", None).text(20),
        writer.script("Why not?", None).text(20),
        writer.script("Why?", 3).text(20),
        writer.script("Why?", None, copy=1).text(20),
        Writer(vocabulary, 8, None).script("Why?", None).text(20),
    }
    assert len(texts) == 5


def test_the_text_is_the_sum_of_the_pieces_without_the_end_token(vocabulary: Vocabulary) -> None:
    script = Writer(vocabulary, 0, 30).script("Tell me", None)
    assert script.natural_end is not None
    length = script.natural_end.after_tokens
    pieces = [script.piece(index) for index in range(1, length + 1)]
    assert pieces[-1] == vocabulary.end
    assert pieces[-1].special
    assert script.text(length) == "".join(piece.text for piece in pieces[:-1])


def test_natural_lengths_have_the_mean_that_was_asked_for(vocabulary: Vocabulary) -> None:
    writer = Writer(vocabulary, 0, 100)
    ends = [writer.script(f"prompt {number}", None).natural_end for number in range(2000)]
    lengths = [end.after_tokens for end in ends if end is not None]
    assert len(lengths) == 2000
    assert mean(lengths) == pytest.approx(101, rel=0.1)


def test_without_a_mean_nothing_ends_by_itself(vocabulary: Vocabulary) -> None:
    assert Writer(vocabulary, 0, None).script("x", None).natural_end is None


def test_a_stop_text_ends_where_the_text_first_ends_with_it(vocabulary: Vocabulary) -> None:
    writer = Writer(vocabulary, 0, None)
    free = writer.script("stop me", None)
    stop = free.piece(9).text
    first = next(index for index in range(1, 20) if free.text(index).endswith(stop))
    script = writer.script("stop me", None)
    script.stop_at([stop], 50)
    assert script.natural_end is not None
    assert (script.natural_end.after_tokens, script.natural_end.reason) == (first, FinishReason.STOP)


def test_a_stop_text_that_never_comes_changes_nothing(vocabulary: Vocabulary) -> None:
    script = Writer(vocabulary, 0, None).script("x", None)
    script.stop_at(["\u2603", ""], 500)
    assert script.natural_end is None


def test_a_given_text_is_spelled_exactly_and_then_ends(vocabulary: Vocabulary) -> None:
    script = Writer(vocabulary, 0, None).script("x", None)
    script.spell('{"name": "Zoë", "n": 1}')
    assert script.natural_end is not None
    assert script.text(script.natural_end.after_tokens) == '{"name": "Zoë", "n": 1}'


def test_log_probabilities_are_negative_and_always_the_same() -> None:
    values = [made_up_logprob(index) for index in range(1, 100)]
    assert all(-2.1 < value < 0 for value in values)
    assert values == [made_up_logprob(index) for index in range(1, 100)]
