"""The counters, against sums by hand."""

import pytest

from llmshed.admission.queueing import fairness
from llmshed.admission.queueing.fairness import ServedTokens


@pytest.fixture
def served() -> ServedTokens:
    served = ServedTokens()
    served.lift("acme", (), 0.0)
    served.lift("bolt", ("acme",), 0.0)
    return served


def test_tokens_count_by_weight(served: ServedTokens) -> None:
    served.charge("acme", 2.0, 1_000)
    served.charge("bolt", 0.5, 1_000)
    assert (served.of("acme"), served.of("bolt"), served.of("nobody")) == (500.0, 2_000.0, 0.0)


def test_who_returns_starts_at_the_least_of_those_that_wait(served: ServedTokens) -> None:
    served.charge("acme", 1.0, 8_000)
    served.charge("bolt", 1.0, 5_000)
    served.lift("core", ("acme", "bolt"), 1.0)
    assert served.of("core") == 5_000.0
    served.rest("acme")
    served.charge("bolt", 1.0, 4_000)
    served.lift("acme", ("bolt",), 2.0)
    assert served.of("acme") == 9_000.0
    served.lift("acme", ("core",), 3.0)
    assert served.of("acme") == 9_000.0  # what it had more than they is not forgiven


def test_what_was_not_used_is_given_back(served: ServedTokens) -> None:
    served.charge("acme", 2.0, 1_000)
    served.settle("acme", 2.0, -600)
    assert served.of("acme") == 200.0
    served.settle("acme", 2.0, 100)  # an engine's overrun
    assert served.of("acme") == 250.0


def test_work_of_before_a_lift_pays_nothing_after_it(served: ServedTokens) -> None:
    """190 requests filled the replica while nobody waited; what they do not use is no credit against who waits now."""
    served.charge("bolt", 1.0, 10_000)
    served.lift("acme", ("bolt",), 5.0)
    served.charge("acme", 1.0, 3_000)
    for _ in range(190):
        served.settle("acme", 1.0, -2_900, 5.0)
    assert served.of("acme") == 13_000.0
    served.settle("acme", 1.0, -2_900, 5.1)
    assert served.of("acme") == 10_100.0


def test_work_of_before_a_return_pays_what_the_counter_exceeded_the_level_by(served: ServedTokens) -> None:
    served.charge("acme", 1.0, 4_000)
    served.charge("bolt", 1.0, 1_000)
    served.rest("acme")
    served.lift("acme", ("bolt",), 5.0)  # 3,000 above the level
    served.charge("acme", 1.0, 500)
    served.settle("acme", 1.0, -1_900, 4.0)
    assert served.of("acme") == 2_600.0
    served.settle("acme", 1.0, -1_900, 4.0)
    assert served.of("acme") == 1_500.0  # of which 1,100 was left


def test_no_settlement_goes_below_the_level_of_the_last_return(served: ServedTokens) -> None:
    served.charge("bolt", 1.0, 1_000)
    served.lift("acme", ("bolt",), 5.0)
    served.charge("acme", 1.0, 500)
    served.settle("acme", 1.0, -4_000)
    assert served.of("acme") == 1_000.0


def test_nobody_is_charged_or_credited_unknown(served: ServedTokens) -> None:
    served.settle("nobody", 1.0, -500)
    assert "nobody" not in served
    served.clear()
    assert "acme" not in served


def test_idle_tenants_are_forgotten_longest_unchanged_first(
    served: ServedTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fairness, "MOST_IDLE_TENANTS", 2)
    for name in ("core", "dune", "echo"):
        served.lift(name, ("acme",), 0.0)
    served.rest("core")
    served.rest("dune")
    served.charge("core", 1.0, 10)
    served.rest("echo")
    assert [name in served for name in ("core", "dune", "echo", "acme", "bolt")] == [True, False, True, True, True]
    served.lift("echo", ("acme",), 1.0)  # who waits again is not forgotten
    served.rest("acme")
    served.rest("bolt")
    assert "echo" in served
    assert "core" not in served


def test_large_counters_are_counted_from_a_new_zero(served: ServedTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "REBASE_AT", 1_000.0)
    served = ServedTokens()
    for name in ("acme", "bolt", "core"):
        served.lift(name, (), 0.0)
    served.charge("core", 1.0, 10)
    served.rest("core")
    served.charge("acme", 1.0, 900)
    served.charge("bolt", 1.0, 1_000)
    assert served.rebased == 0
    served.charge("bolt", 1.0, 500)
    assert (served.rebased, served.of("acme"), served.of("bolt"), served.of("core")) == (1, 0.0, 600.0, 0.0)


def test_one_that_lags_far_behind_does_not_make_every_charge_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "REBASE_AT", 1_000.0)
    served = ServedTokens()
    served.lift("acme", (), 0.0)
    served.lift("bolt", (), 0.0)
    for _ in range(64):
        served.charge("bolt", 1.0, 1_000)
    assert served.rebased == 5  # at 2, 5, 11, 23 and 47 thousand
