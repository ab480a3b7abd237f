"""The part of what is dispatched that a tenant's first arrivals take."""

import math

import pytest

from llmshed.admission.estimate.own_share import MEMORY_SECONDS, MOST_TENANTS, OwnShares


def test_a_tenants_first_arrivals_count_for_it_alone() -> None:
    shares = OwnShares()
    shares.dispatched("a", 300, 1.0, first=True)
    shares.dispatched("a", 100, 1.0, first=False)
    shares.dispatched("b", 600, 1.0, first=True)

    assert [shares.ratio(tenant, 1.0) for tenant in "abc"] == [pytest.approx(0.3), pytest.approx(0.6), 0.0]


def test_what_was_dispatched_long_ago_fades_against_what_is_new() -> None:
    shares = OwnShares()
    shares.dispatched("a", 1_000, 0.0, first=True)
    shares.dispatched("b", 1_000, MEMORY_SECONDS, first=True)

    assert shares.ratio("a", MEMORY_SECONDS) == pytest.approx(math.exp(-1) / (1 + math.exp(-1)))


def test_an_idle_pool_and_a_crowd_of_tenants_are_taken() -> None:
    shares = OwnShares()
    assert shares.ratio("a", 5.0) == 0.0
    for number in range(MOST_TENANTS + 1):
        shares.dispatched(f"t{number}", 1, 0.0, first=True)

    assert shares.ratio("t0", 0.0) == 0.0
    assert shares.ratio("t1", 0.0) == pytest.approx(1 / (MOST_TENANTS + 1))
