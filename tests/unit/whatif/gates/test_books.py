"""Who is where: charges and their one way back."""

import pytest

from fakes.knocks import work
from fakes.stages import stage
from llmshed.whatif.gates.books import Books

SETTING = stage(2)


def books() -> Books:
    made = Books()
    for spec in SETTING.specs:
        made.come_up(spec)
    return made


def test_a_charge_is_told_as_it_was_found_and_given_back_once() -> None:
    made = books()
    first, _ = made.replicas
    sent = made.send(work(SETTING, 1, 400, 100), first, 0.0)
    assert sent.verdict.equation is not None
    assert sent.verdict.equation.active_tokens == 0
    assert first.ledger.active_tokens == 500
    assert list(made.running) == [1]
    assert made.end(1).tokens == 500
    assert first.ledger.active_tokens == 0
    with pytest.raises(KeyError):
        made.end(1)


def test_an_abandoned_request_is_freed_when_the_engine_has_surely_noticed() -> None:
    made = books()
    first, _ = made.replicas
    made.send(work(SETTING, 1), first, 0.0)
    made.first_token(1, 0.5)
    made.abandon(1, 1.0)
    at = made.next_release()
    assert at == 1.0 + first.budget.release_grace_seconds
    assert made.free_due(at - 0.001) == []
    assert [released.key for released in made.free_due(at)] == [1]
    assert made.next_release() is None


def test_a_removed_replica_is_forgotten_with_its_last_request() -> None:
    made = books()
    first, _ = made.replicas
    made.send(work(SETTING, 1), first, 0.0)
    made.remove(first.spec.name)
    assert len(made.replicas) == 2
    made.end(1)
    assert [replica.spec.name for replica in made.replicas] == ["main-2"]
    made.remove("main-2")
    assert not made.replicas


def test_check_finds_a_charge_that_was_lost_and_one_that_nobody_owns() -> None:
    made = books()
    first, second = made.replicas
    made.send(work(SETTING, 1), first, 0.0)
    made.send(work(SETTING, 2), second, 0.0)
    assert made.check() == []
    first.ledger.free(1)
    del made._sent[2]
    assert made.check() == [
        "request 1 was sent to main-1 and is charged on []",
        "main-2: request 2 is charged but neither running nor releasing",
    ]
