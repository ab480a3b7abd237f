import pytest

from llmshed.admission.budget import Reservation
from llmshed.admission.ledger import Charge, Ledger, Phase
from llmshed.admission.request import Lane


def charge(key: int, tokens: int = 100, sequences: int = 1) -> Charge:
    return Charge(key, "acme", Lane.INTERACTIVE, Reservation(tokens - 10, 10, 0, sequences), 10, 0.0)


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger()
    ledger.charge(charge(1, 100))
    ledger.charge(charge(2, 250, 3))
    return ledger


def test_sums_follow_charge_and_free(ledger: Ledger) -> None:
    assert (ledger.active_tokens, ledger.active_sequences, len(ledger)) == (350, 4, 2)
    assert ledger.free(2).reservation.total_tokens == 250
    assert (ledger.active_tokens, ledger.active_sequences, len(ledger)) == (100, 1, 1)
    assert ledger.check() == []


def test_nothing_is_charged_or_freed_twice(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="already charged"):
        ledger.charge(charge(1))
    ledger.free(1)
    with pytest.raises(KeyError):
        ledger.free(1)
    assert ledger.active_tokens == 250


def test_releasing_work_stays_active_until_it_is_due(ledger: Ledger) -> None:
    ledger.begin_release(1, 5.0)
    assert (ledger.active_tokens, ledger.releasing_tokens, ledger.next_release()) == (350, 100, 5.0)
    assert ledger.take_due(4.999) == []
    assert ledger.take_due(5.0) == [1]
    ledger.free(1)
    assert (ledger.releasing_tokens, ledger.next_release()) == (0, None)


def test_a_release_that_was_freed_before_its_time_is_due_no_more_and_the_earliest_comes_first(ledger: Ledger) -> None:
    ledger.charge(charge(3))
    for key, release_at in ((1, 5.0), (2, 3.0), (3, 4.0)):
        ledger.begin_release(key, release_at)
    ledger.free(2)
    assert (ledger.next_release(), ledger.take_due(9.0)) == (4.0, [3, 1])
    assert ledger.check() == ["2 requests are releasing, 0 are timed"], "both are owed"
    ledger.free(3)
    ledger.free(1)
    assert (ledger.next_release(), ledger.check()) == (None, [])


def test_the_first_token_counts_once(ledger: Ledger) -> None:
    ledger.first_token(1, 1.0)
    ledger.first_token(1, 2.0)
    assert (ledger[1].phase, ledger[1].first_token_at) == (Phase.DECODE, 1.0)


@pytest.mark.parametrize("damage", ["active_tokens", "active_sequences"])
def test_check_sees_a_sum_that_drifted(ledger: Ledger, damage: str) -> None:
    setattr(ledger, damage, getattr(ledger, damage) + 1)
    assert any(damage in sentence for sentence in ledger.check())


def test_check_sees_a_phase_that_contradicts_its_times(ledger: Ledger) -> None:
    ledger[1].phase = Phase.RELEASING
    ledger[2].phase = Phase.DECODE
    assert len(ledger.check()) == 3
