"""Whom rungs in force hold back, and how much output they grant; expected values by hand from the rungs' scopes."""

from fakes.door import BOTH_LANES, request
from fakes.rungs import SHED_LOW, SHED_NORMAL, STOP_BULK, cap, rung
from llmshed.admission.request import SERVICE_RANKS, Lane, PriorityClass
from llmshed.admission.service.measures import Measures

HIGH, NORMAL, LOW, BULK_HIGH, BULK_NORMAL, BULK_LOW = range(SERVICE_RANKS)


def held_ranks(*settings: dict[str, object], lanes: frozenset[Lane] = BOTH_LANES, tenant: str = "acme") -> set[int]:
    measures = Measures([rung(f"r{n}", **one) for n, one in enumerate(settings, 1)], lanes)
    return {rank for rank in range(SERVICE_RANKS) if measures.holding_back(rank, tenant)}


def test_bulk_first_then_the_lowest_class_then_the_next() -> None:
    bulk = {BULK_HIGH, BULK_NORMAL, BULK_LOW}
    assert held_ranks(STOP_BULK) == bulk
    assert held_ranks(STOP_BULK, SHED_LOW) == bulk | {LOW}
    assert held_ranks(STOP_BULK, SHED_LOW, SHED_NORMAL) == bulk | {LOW, NORMAL}


def test_nobody_is_held_back_while_a_lower_rank_is_taken() -> None:
    """Bulk of the lowest class of all tenants goes first, whatever the rungs ask for."""
    assert held_ranks(SHED_LOW) == set()
    assert held_ranks(STOP_BULK, SHED_NORMAL) == {BULK_HIGH, BULK_NORMAL, BULK_LOW}
    assert held_ranks(STOP_BULK | {"scope": {"classes": ["high"]}}) == set()
    assert held_ranks(STOP_BULK | {"scope": {"classes": ["low"]}}, SHED_LOW) == {BULK_LOW}
    assert held_ranks(STOP_BULK | {"scope": {"tenants": ["acme"]}}, SHED_LOW) == {BULK_LOW}


def test_a_tenant_is_held_back_alone_where_all_lower_ranks_of_all_are() -> None:
    shed = SHED_LOW | {"scope": {"classes": ["low"], "tenants": ["acme"]}}
    bulk = {BULK_HIGH, BULK_NORMAL, BULK_LOW}
    assert held_ranks(STOP_BULK, shed, SHED_NORMAL) == bulk | {LOW}
    assert held_ranks(STOP_BULK, shed, SHED_NORMAL, tenant="other") == bulk


def test_lanes_that_the_pool_does_not_serve_hold_nothing_up_and_are_not_held() -> None:
    assert held_ranks(SHED_LOW, lanes=frozenset({Lane.INTERACTIVE})) == {LOW}
    assert held_ranks(STOP_BULK, SHED_LOW, lanes=frozenset({Lane.BULK})) == set()


def test_of_several_rungs_that_hold_back_the_one_that_is_left_last_is_named() -> None:
    measures = Measures([rung("first", **STOP_BULK), rung("again", **STOP_BULK)], BOTH_LANES)
    found = measures.holding_back(BULK_LOW, "acme")
    assert found is not None
    assert (found.number, found.rung.name) == (1, "first")


def test_the_least_output_of_the_rungs_that_cover_a_request_is_granted() -> None:
    low = {"scope": {"classes": ["low"]}}
    measures = Measures([rung("r1", **cap(256)), rung("r2", **cap(64, **low)), rung("r3", **cap(128))], BOTH_LANES)
    names = {cls: found.rung.name for cls in PriorityClass if (found := measures.cap(cls, "acme")) is not None}
    assert names == {PriorityClass.HIGH: "r3", PriorityClass.NORMAL: "r3", PriorityClass.LOW: "r2"}
    others = Measures([rung("r1", **cap(64, scope={"tenants": ["other"]}))], BOTH_LANES)
    assert others.cap(PriorityClass.LOW, "acme") is None


def test_what_was_done_is_told_in_the_order_of_the_rungs() -> None:
    shrink = {"action": "shrink_context", "drop_share": 0.5}
    drop = {"action": "drop_enrichment"}
    measures = Measures([rung("r1", **drop), rung("r2", **cap(64)), rung("r3", **shrink)], BOTH_LANES)
    both = request(1, degradations=("drop_enrichment", "shrink_context"))
    assert measures.with_cap(both, 2) == ("drop_enrichment", "cap_output", "shrink_context")
    assert measures.with_cap(request(1), 2) == ("cap_output",)
    moved = request(1, degradations=("shrink_context", "smaller_model"), moved_from="large")
    assert measures.with_cap(moved, 2) == ("shrink_context", "smaller_model", "cap_output")
