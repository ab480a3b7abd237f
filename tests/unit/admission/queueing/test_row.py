import pytest

from fakes.queued import waiting
from llmshed.admission.queueing.row import Row


def row_of(*arrivals: tuple[int, float]) -> Row:
    row = Row()
    for key, joined_at in arrivals:
        row.add(waiting(key, joined_at=joined_at, sequences=2))
    return row


def test_first_come_first_and_sums() -> None:
    row = row_of((1, 0.0), (2, 1.0), (3, 1.0))
    assert [one.key for one in row] == [1, 2, 3]
    assert (row.tokens, row.input_tokens, row.sequences, len(row)) == (3_000, 1_800, 6, 3)
    row.remove(1)
    assert (row.tokens, row.input_tokens, row.sequences, 1 in row, 2 in row) == (2_000, 1_200, 4, False, True)
    assert row.oldest is not None
    assert row.newest is not None
    assert (row.oldest.key, row.newest.key) == (2, 3)


def test_an_empty_row_has_neither_end() -> None:
    assert (Row().oldest, Row().newest) == (None, None)


@pytest.mark.parametrize("joined_at", [0.0, 0.5, 1.0, 2.0, 9.0])
def test_one_that_comes_back_gets_the_place_of_its_arrival(joined_at: float) -> None:
    row = row_of((1, 0.0), (3, 1.0), (4, 1.0), (5, 2.0), (2, joined_at))
    assert [one.arrival for one in row] == sorted([(0.0, 1), (1.0, 3), (1.0, 4), (2.0, 5), (joined_at, 2)])
    assert row.check() == []


@pytest.mark.parametrize("damage", ["tokens", "input_tokens", "sequences"])
def test_check_sees_a_sum_that_drifted(damage: str) -> None:
    row = row_of((1, 0.0))
    setattr(row, damage, 7)
    assert any(sentence.startswith(f"{damage} of a row is 7") for sentence in row.check())


def test_check_sees_a_row_out_of_order() -> None:
    row = row_of((1, 0.0), (2, 1.0))
    row._waiting.move_to_end(1)
    assert row.check() == ["a row is not in the order of arrival"]
