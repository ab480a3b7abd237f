"""A debt bucket by hand: 1,000 tokens a second, at most one second of them."""

import pytest

from llmshed.admission.prefill.bucket import DebtBucket


def bucket() -> DebtBucket:
    return DebtBucket(1_000.0, 1.0, now=10.0)


def test_it_starts_full_and_holds_no_more_than_its_span() -> None:
    assert bucket().level(10.0) == 1_000
    assert bucket().level(99.0) == 1_000


def test_what_is_there_may_be_overdrawn_and_is_paid_off_to_the_instant() -> None:
    overdrawn = bucket()
    overdrawn.take(3_500, 10.0)
    assert overdrawn.level(10.0) == -2_500
    assert overdrawn.paid_at == 12.5
    assert not overdrawn.open(12.499)
    assert overdrawn.open(12.5)


def test_time_beyond_the_span_buys_nothing() -> None:
    rested = bucket()
    rested.take(1_000, 60.0)
    assert rested.level(60.0) == 0


def test_tokens_given_back_are_there_again_but_never_more_than_the_span() -> None:
    refunded = bucket()
    refunded.take(700, 10.0)
    refunded.give_back(700)
    assert refunded.level(10.0) == 1_000
    refunded.give_back(700)
    assert refunded.level(10.0) == 1_000


def test_forgetting_loses_credit_and_keeps_debt() -> None:
    full, owing = bucket(), bucket()
    full.forget(10.0)
    owing.take(1_200, 10.0)
    owing.forget(10.0)
    assert [full.level(10.0), owing.level(10.0)] == pytest.approx([0, -200])


@pytest.mark.parametrize(("taken", "rate", "level"), [(3_000, 500.0, -2_000), (400, 2_000.0, 600), (0, 500.0, 500)])
def test_another_rate_keeps_the_tokens_as_far_as_they_fit(taken: int, rate: float, level: float) -> None:
    changed = bucket()
    changed.take(taken, 10.0)
    changed.renew(rate, 10.0)
    assert changed.level(10.0) == pytest.approx(level)


@pytest.mark.parametrize(("tokens", "seconds"), [(200, 0.0), (1_000, 0.5), (-2_000, 0.0)])
def test_the_wait_for_tokens_counts_what_is_there(tokens: int, seconds: float) -> None:
    half = bucket()
    half.take(500, 10.0)
    assert half.seconds_until(tokens, 10.0) == pytest.approx(seconds)
