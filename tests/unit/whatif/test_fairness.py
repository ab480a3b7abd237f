"""Jain's index, and tenants in bounded memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.whatif.fairness import OTHERS, TenantTally, jain_index


def test_the_index_of_the_source() -> None:
    # Jain, Chiu, Hawe: of n users k have equal parts and the others none: k / n.
    assert jain_index([1.0] * 20 + [0.0] * 80) == pytest.approx(0.2)
    assert jain_index([50.0, 50.0]) == 1.0
    assert jain_index([]) is None
    assert jain_index([0.0, 0.0]) is None


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=50), st.floats(0.001, 1e3))
def test_the_index_lies_between_a_part_and_one_and_knows_no_scale(parts: list[float], factor: float) -> None:
    index = jain_index(parts)
    assert index is not None
    assert 1 / len(parts) - 1e-9 <= index <= 1 + 1e-9
    assert jain_index([part * factor for part in parts]) == pytest.approx(index)


def test_who_got_a_like_share_of_unlike_demand_was_treated_fairly() -> None:
    tally = TenantTally(10)
    tally.offer("large", 900)
    tally.offer("small", 100)
    tally.serve("large", 450)
    tally.serve("small", 50)
    fairness = tally.fairness()
    assert fairness.jain_served_share == 1.0
    assert fairness.jain_served_tokens == pytest.approx(500**2 / (2 * (450**2 + 50**2)))


def test_a_tenant_that_got_nothing_counts() -> None:
    tally = TenantTally(10)
    tally.offer("served", 100)
    tally.offer("starved", 100)
    tally.serve("served", 100)
    assert tally.fairness().jain_served_tokens == 0.5


def test_tenants_beyond_the_bound_are_one() -> None:
    tally = TenantTally(3)
    for number in range(1000):
        tally.offer(f"t{number}", 10)
        tally.serve(f"t{number}", 5)
    uses = tally.fairness().tenants
    assert [use.tenant for use in uses] == ["t0", "t1", "t2", OTHERS]
    assert [(use.offered_tokens, use.served_tokens) for use in uses] == [(10, 5)] * 3 + [(9970, 4985)]


def test_those_beyond_the_bound_are_no_unfairly_large_tenant() -> None:
    tally = TenantTally(3)
    for number in range(1000):
        tally.offer(f"t{number}", 10)
        tally.serve(f"t{number}", 5)
    fairness = tally.fairness()
    assert (fairness.jain_served_tokens, fairness.jain_served_share) == (1.0, 1.0)
