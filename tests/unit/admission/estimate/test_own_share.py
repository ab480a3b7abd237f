"""What a tenant's first arrivals ask for, by what is dispatched."""

import math

import pytest

from llmshed.admission.estimate.own_share import MEMORY_SECONDS, MOST_TENANTS, OwnShares


def test_a_tenants_first_arrivals_count_for_it_alone_and_for_no_more_than_all() -> None:
    shares = OwnShares()
    shares.dispatched(1_000, 1.0)
    for tenant, tokens in (("a", 300), ("b", 600), ("c", 5_000)):
        shares.asked(tenant, tokens, 1.0)

    assert [shares.ratio(tenant, 1.0) for tenant in "abcd"] == [pytest.approx(0.3), pytest.approx(0.6), 1.0, 0.0]


def test_what_was_asked_for_long_ago_fades_against_what_is_new() -> None:
    shares = OwnShares()
    shares.asked("a", 1_000, 0.0)
    shares.dispatched(1_000, MEMORY_SECONDS)

    assert shares.ratio("a", MEMORY_SECONDS) == pytest.approx(math.exp(-1))


def test_an_idle_pool_and_a_crowd_of_tenants_are_taken() -> None:
    shares = OwnShares()
    shares.asked("a", 5, 5.0)
    assert shares.ratio("a", 5.0) == 0.0
    shares.dispatched(100, 5.0)
    for number in range(MOST_TENANTS):
        shares.asked(f"t{number}", 1, 5.0)

    assert shares.ratio("a", 5.0) == 0.0
    assert shares.ratio("t0", 5.0) == pytest.approx(0.01)
