"""Re-prefills by hand: 1,024 output tokens at 0.01 s are 10.24 s a piece."""

import pytest

from llmshed.admission.prefill.reprefill import MOST_AT_ONCE, Reprefills


def started(*, ceiling: int, piece: int = 1_024, tokens: int = 2_000) -> Reprefills:
    reprefills = Reprefills(piece)
    reprefills.start(1, tokens, ceiling, 0.01, at=100.0)
    return reprefills


def test_input_and_output_so_far_come_again_after_each_piece() -> None:
    reprefills = started(ceiling=4_000)
    assert reprefills.next_due() == pytest.approx(110.24)
    assert list(reprefills.take_due(110.0)) == []
    due = list(reprefills.take_due(1_000.0))
    assert [at for at, _ in due] == pytest.approx([110.24, 120.48, 130.72])
    assert [tokens for _, tokens in due] == [3_024, 4_048, 5_072]
    assert reprefills.next_due() == float("inf")
    assert reprefills.check() == []


@pytest.mark.parametrize(("ceiling", "count"), [(1_024, 0), (1_025, 1), (2_048, 1), (2_049, 2)])
def test_an_output_of_one_piece_is_not_prefilled_again(ceiling: int, count: int) -> None:
    assert len(list(started(ceiling=ceiling).take_due(1_000.0))) == count


def test_an_engine_that_never_does_it_expects_none() -> None:
    assert started(ceiling=9_000, piece=0).next_due() == float("inf")


def test_a_sequence_that_ended_comes_no_more_not_even_under_the_same_key() -> None:
    reprefills = started(ceiling=2_000)
    reprefills.stop(1)
    reprefills.stop(1)
    assert reprefills.tokens_per_second == 0
    reprefills.start(1, 500, 2_000, 0.01, at=105.0)
    assert [tokens for _, tokens in reprefills.take_due(1_000.0)] == [1_524]


def test_the_rate_is_what_is_to_come_over_its_pieces() -> None:
    reprefills = started(ceiling=3_000)
    assert reprefills.tokens_per_second == pytest.approx(3_024 / 10.24)
    list(reprefills.take_due(115.0))
    assert reprefills.tokens_per_second == pytest.approx(4_048 / 10.24)
    list(reprefills.take_due(130.0))
    assert reprefills.tokens_per_second == pytest.approx(0)
    reprefills.stop(1)
    assert reprefills.check() == []


def test_a_call_takes_so_many_and_the_next_goes_on() -> None:
    reprefills = Reprefills(1_024)
    for key in range(MOST_AT_ONCE + 10):
        reprefills.start(key, 100, 2_000, 0.01, at=0.0)
    assert len(list(reprefills.take_due(50.0))) == MOST_AT_ONCE
    assert len(list(reprefills.take_due(50.0))) == 10


def test_check_tells_a_wrong_rate() -> None:
    reprefills = started(ceiling=3_000)
    reprefills.tokens_per_second = 7.0
    assert reprefills.check() == ["re-prefills come at 7.0 tokens/s, the sequences sum to 295.3125"]
