"""Fairness between tenants, against sums by hand and the bound of the source."""

from collections.abc import Iterator
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.queued import waiting
from llmshed.admission.queueing import fairness
from llmshed.admission.queueing.class_line import ClassLine
from llmshed.admission.queueing.tenant_line import Ahead, TenantLine
from llmshed.admission.queueing.waiting import Waiting


def line_of(*waits: tuple[str, int, float]) -> ClassLine:
    """Return a line of (tenant, tokens, weight) in the order of arrival, keys from 0."""
    line = ClassLine()
    for key, (tenant, tokens, weight) in enumerate(waits):
        line.join(waiting(key, tenant, float(key), tokens - 100, 100, weight=weight), 0.0)
    return line


def serve(line: ClassLine) -> Waiting:
    first = next(line.in_order())
    line.leave(first)
    line.charge(first.tenant, first.weight, first.total_tokens, 0.0)
    return first


def keys(line: ClassLine) -> list[int]:
    return [one.key for one in line.in_order()]


def test_a_tenant_that_sends_ten_does_not_stand_before_one_that_sends_one() -> None:
    line = line_of(*[("acme", 1_000, 1.0)] * 10, ("bolt", 1_000, 1.0))
    assert keys(line) == [0, 10, *range(1, 10)]


def test_tokens_count_not_requests() -> None:
    """Three of 1,000 for each of 3,000; at equal counters the earlier arrival goes first."""
    line = line_of(*[("acme", 3_000, 1.0)] * 2, *[("bolt", 1_000, 1.0)] * 6)
    assert keys(line) == [0, 2, 3, 4, 1, 5, 6, 7]


def test_a_weight_of_three_gets_three_tokens_for_one() -> None:
    line = line_of(*[("acme", 900, 3.0)] * 9, *[("bolt", 900, 1.0)] * 9)
    served = [serve(line).tenant for _ in range(12)]
    assert (served.count("acme"), served.count("bolt")) == (9, 3)


def test_the_order_foretold_is_the_order_served() -> None:
    line = line_of(("acme", 700, 1.0), ("bolt", 300, 2.0), ("acme", 200, 1.0), ("core", 900, 0.5), ("bolt", 800, 2.0))
    foretold = keys(line)
    assert [serve(line).key for _ in foretold] == foretold
    assert len(line) == 0


def test_between_tenants_a_continuing_conversation_breaks_ties_only() -> None:
    line = line_of(("acme", 1_000, 1.0))
    line.join(waiting(1, "bolt", 1.0, continuing=True), 0.0)
    assert keys(line) == [1, 0]
    line.charge("bolt", 1.0, 1, 0.0)
    assert keys(line) == [0, 1]


def test_service_while_nobody_waits_is_held_against_nobody() -> None:
    line = ClassLine()
    line.charge("acme", 1.0, 1_000_000, 0.0)
    line.join(waiting(1, "acme", 1.0), 0.0)
    line.join(waiting(2, "bolt", 2.0), 0.0)
    line.join(waiting(3, "acme", 3.0), 0.0)
    line.join(waiting(4, "bolt", 4.0), 0.0)
    assert keys(line) == [1, 2, 3, 4]


def test_when_nobody_waits_any_more_all_start_level_again() -> None:
    line = line_of(("acme", 1_000, 1.0), ("bolt", 1_000, 1.0))
    line.charge("acme", 1.0, 9_000, 0.0)
    serve(line)
    serve(line)
    for key, tenant in enumerate(("bolt", "acme", "bolt", "acme"), start=5):
        line.join(waiting(key, tenant, float(key)), float(key))
    assert keys(line) == [5, 6, 7, 8]


def test_tenants_that_come_and_go_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "MOST_IDLE_TENANTS", 3)
    line = line_of(("acme", 1_000, 1.0))
    for key in range(1, 20):
        one = waiting(key, f"tenant-{key}", float(key))
        line.join(one, float(key))
        line.leave(one)
        line.charge(f"passing-{key}", 1.0, 100, float(key))
    assert len(line._counters._accounts) == 4


def test_what_passes_those_that_wait_counts() -> None:
    line = line_of(*[("acme", 1_000, 1.0)] * 3)
    line.charge("bolt", 1.0, 2_000, 0.0)  # small enough to pass their head
    line.join(waiting(9, "bolt", 9.0), 0.0)
    assert keys(line) == [0, 1, 2, 9]


def test_silence_banks_no_credit() -> None:
    line = line_of(*[("acme", 1_000, 1.0)] * 20, ("bolt", 1_000, 1.0))
    while len(line) > 8:
        serve(line)
    for key in range(100, 104):
        line.join(waiting(key, "bolt", float(key)), 0.0)
    assert [serve(line).tenant for _ in range(8)] in (["acme", "bolt"] * 4, ["bolt", "acme"] * 4)


def test_settlement_serves_again_who_reserved_too_much() -> None:
    """Both reserve 1,000; acme uses 250 of it, so it gets four for one."""
    line = line_of(*[("acme", 1_000, 1.0)] * 40, *[("bolt", 1_000, 1.0)] * 40)
    served = []
    for _ in range(40):
        one = serve(line)
        served.append(one.tenant)
        line.settle(one.tenant, 1.0, -750 if one.tenant == "acme" else 0, 1.0)
    assert (served.count("acme"), served.count("bolt")) == (32, 8)


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.tuples(st.sampled_from((0.5, 1.0, 3.0, 7.0)), st.sampled_from((0.5, 1.0, 3.0, 7.0))),
    st.lists(st.tuples(st.integers(101, 4_000), st.integers(101, 4_000)), min_size=15, max_size=30),
)
def test_two_tenants_that_always_wait_stay_within_the_bound(
    weights: tuple[float, float], sizes: list[tuple[int, int]]
) -> None:
    """Over any stretch of service, by the paper: |S_f / w_f - S_g / w_g| <= 2 max(R / w)."""
    line = line_of(
        *[wait for f, g in sizes for wait in (("f", f, weights[0]), ("g", g, weights[1]))], ("other", 500, 1.0)
    )
    bound = 2 * max(max(f / weights[0], g / weights[1]) for f, g in sizes)
    left, ahead, differences = {"f": len(sizes), "g": len(sizes), "other": 1}, 0.0, [0.0]
    while left["f"] and left["g"]:
        one = serve(line)
        left[one.tenant] -= 1
        ahead += {"f": 1, "g": -1, "other": 0}[one.tenant] * one.total_tokens / one.weight
        differences.append(ahead)
    assert max(differences) - min(differences) <= bound + 1e-6


def test_the_first_few_cost_no_walk_through_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    line = line_of(*[(f"tenant-{number % 200}", 1_000, 1.0) for number in range(400)])
    opened = []
    walk = TenantLine.__iter__

    def watched(self: TenantLine) -> Iterator[Waiting]:
        opened.append(self)
        return walk(self)

    monkeypatch.setattr(TenantLine, "__iter__", watched)
    assert [one.key for one in islice(line.in_order(), 3)] == [0, 1, 2]
    assert len(opened) <= 3


class TestAhead:
    """What a newcomer is told stands before it."""

    def test_nothing_in_an_empty_line(self) -> None:
        assert ClassLine().ahead_of("acme", 1.0, continuing=False) == Ahead(0, 0, 0)

    def test_all_own_work_and_nobody_else_s_when_alone(self) -> None:
        line = line_of(("acme", 1_000, 1.0), ("acme", 3_000, 1.0))
        assert line.ahead_of("acme", 1.0, continuing=False) == Ahead(4_000, 3_800, 2)
        assert line.ahead_of("acme", 1.0, continuing=True) == Ahead(0, 0, 0)

    def test_one_request_of_each_other_tenant_for_one_that_returns(self) -> None:
        line = line_of(*[("acme", 1_000, 1.0)] * 10, *[("bolt", 2_000, 1.0)] * 10)
        assert line.ahead_of("core", 1.0, continuing=False) == Ahead(3_000, 2_800, 2)

    def test_one_that_returns_stands_at_the_level_of_those_that_wait(self) -> None:
        line = line_of(*[("acme", 1_000, 1.0)] * 3, *[("bolt", 2_000, 1.0)] * 3)
        for _ in range(3):
            serve(line)
        assert [one.key for one in line.in_order()] == [2, 4, 5]  # acme has had 2,000 and bolt too
        assert line.ahead_of("core", 1.0, continuing=False) == Ahead(3_000, 3_000 * 4_700 // 5_000, 2)

    def test_never_more_than_the_others_have(self) -> None:
        line = line_of(*[("acme", 1_000, 1.0)] * 10, ("bolt", 500, 1.0))
        assert line.ahead_of("acme", 1.0, continuing=False) == Ahead(10_500, 9_400, 11)

    def test_the_others_weighted_share_beside_own_work(self) -> None:
        """Own 2,000 at weight 1; beside it 3 x 2,000 of weight 3, and the request of 1,000 that passes the turn."""
        line = line_of(*[("acme", 1_000, 1.0)] * 2, *[("bolt", 1_000, 3.0)] * 20)
        assert line.ahead_of("acme", 1.0, continuing=False) == Ahead(2_000 + 7_000, 1_800 + 6_300, 2 + 7)

    def test_nobody_whose_counter_is_beyond_its_turn(self) -> None:
        line = line_of(*[("acme", 1_000, 1.0)] * 2, *[("bolt", 1_000, 1.0)] * 2)
        line.charge("bolt", 1.0, 5_000, 0.0)
        assert line.ahead_of("acme", 1.0, continuing=False) == Ahead(2_000, 1_800, 2)


class TestBeyondShare:
    """Whom a newcomer displaces in its own class."""

    def test_the_newest_of_who_waits_with_most(self) -> None:
        line = line_of(*[("acme", 1_000, 1.0)] * 3, *[("bolt", 1_000, 1.0)] * 2)
        one = line.beyond_share("core", 1.0, 1_000)
        assert one is not None
        assert one.key == 2

    def test_most_for_its_weight(self) -> None:
        line = line_of(*[("acme", 1_000, 4.0)] * 3, *[("bolt", 1_000, 1.0)] * 2)
        one = line.beyond_share("core", 1.0, 1_000)
        assert one is not None
        assert one.key == 4

    @pytest.mark.parametrize(("tokens", "displaces"), [(0, True), (1_000, True), (2_999, True), (3_000, False)])
    def test_only_who_waits_with_more_than_the_newcomer_then_would(self, tokens: int, displaces: bool) -> None:  # noqa: FBT001 - a parameter
        line = line_of(*[("acme", 1_000, 1.0)] * 3)
        assert (line.beyond_share("core", 1.0, tokens) is not None) is displaces

    def test_two_tenants_never_displace_one_another_in_turn(self) -> None:
        line = line_of(("acme", 1_000, 1.0))
        assert line.beyond_share("bolt", 1.0, 0) is None
        assert line.beyond_share("bolt", 1.0, 200) is None

    def test_nobody_displaces_its_own(self) -> None:
        line = line_of(*[("acme", 1_000, 1.0)] * 3, ("bolt", 1_000, 1.0))
        assert line.beyond_share("acme", 1.0, 1_000) is None

    def test_ranks_follow_what_left(self) -> None:
        line = line_of(*[("acme", 1_000, 1.0)] * 4, *[("bolt", 1_000, 1.0)] * 3)
        assert line.beyond_share("core", 1.0, 0) is not None
        for gone in [one for one in line if one.tenant == "acme"]:
            line.leave(gone)
        one = line.beyond_share("core", 1.0, 0)
        assert one is not None
        assert one.key == 6
        assert line.check() == []


def test_counters_may_be_counted_anew_at_any_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = [(tenant, 1_000, weight) for _ in range(12) for tenant, weight in (("a", 1.0), ("b", 2.0), ("c", 4.0))]
    plain = line_of(*waits)
    expected = [serve(plain).key for _ in waits]
    monkeypatch.setattr(fairness, "REBASE_AT", 1_500.0)
    line = line_of(*waits)
    order = []
    for _ in waits:
        order.append(serve(line).key)
        assert line.check() == []
    assert order == expected


def test_a_new_weight_counts_from_the_next_request_on() -> None:
    line = line_of(("acme", 1_000, 1.0), ("bolt", 1_000, 1.0), ("acme", 1_000, 4.0))
    assert line.ahead_of("bolt", 1.0, continuing=False).tokens == 3_000
    assert line.check() == []


@pytest.mark.parametrize("damage", ["_weights", "_largest_tokens", "_order", "_tenants", "_backlogs"])
def test_check_sees_damage(damage: str) -> None:
    line = line_of(("acme", 1_000, 1.0), ("bolt", 2_000, 1.0))
    line.beyond_share("core", 1.0, 0)
    if damage == "_tenants":
        line._tenants["core"] = TenantLine(1.0)
    elif damage in {"_order", "_backlogs"}:
        getattr(line, damage).place("acme", (5.0,))
    else:
        setattr(line, damage, 7)
    assert line.check()


def test_arrivals_of_a_class_come_by_kind_and_time() -> None:
    line = line_of(("acme", 1_000, 1.0), ("bolt", 1_000, 1.0))
    assert all(one.arrival < other.arrival for one, other in pairwise(line))
