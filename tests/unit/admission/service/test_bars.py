"""What rungs in force leave of a request's options: who is refused by which rung, with which words and which wait."""

from dataclasses import replace
from typing import Any

import pytest

from fakes.door import arrive, queueing_lanes, request, spec
from fakes.rungs import SHED_LOW, SHED_NORMAL, STOP_BULK, cap, held, ladder_of, policy_on, pool_on
from llmshed.admission.actions import Dispatch, Enqueue, Refuse
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import ReplicaUp
from llmshed.admission.policy import PoolPolicy, TenantPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, Lane, PriorityClass

BULK: dict[str, Any] = {"asked_intent": Intent.BULK}
LOW: dict[str, Any] = {"asked_class": PriorityClass.LOW}
LADDER = ladder_of(STOP_BULK, SHED_LOW, cap(256), SHED_NORMAL)
TENANTS = {"acme": TenantPolicy("acme", top_class=PriorityClass.HIGH)}


def on(rung: str | None, *pools: PoolPolicy, **budget: Any) -> AdmissionController:
    """Return a controller with a replica in each pool, and a rung held for 300 s on the first."""
    pools = pools or (pool_on(LADDER),)
    controller = AdmissionController(policy_on(*pools, tenants=TENANTS, lanes=queueing_lanes()))
    for pool in pools:
        controller.handle(ReplicaUp(spec(f"{pool.name}-1", pool=pool.name, **budget)), 0.0)
    if rung is not None:
        held(controller, rung, until=300.0, pool=pools[0].name)
    return controller


@pytest.mark.parametrize(
    ("rung", "changes", "refused"),
    [
        (None, BULK, False),
        ("r1", BULK, True),
        ("r1", LOW, False),
        ("r2", LOW, True),
        ("r3", {}, False),
        ("r4", {}, True),
        ("r4", {"asked_class": PriorityClass.HIGH}, False),
    ],
)
def test_a_rung_refuses_whom_it_holds_back_though_there_is_room(
    rung: str | None, changes: dict[str, Any], *, refused: bool
) -> None:
    given = {"asked_class": PriorityClass.NORMAL} | changes
    answer = arrive(on(rung), 1, **given)
    assert isinstance(answer, Refuse if refused else Dispatch)
    if refused:
        assert answer.verdict.reason is Reason.SHED_PRIORITY
        assert answer.verdict.retry_after_seconds == 300.0


def test_a_refusal_names_the_rung_its_ladder_and_what_it_does() -> None:
    verdict = arrive(on("r2"), 1, **LOW).verdict
    assert verdict.rung == "r2"
    assert verdict.detail == "rung r2 of ladder small@1 sheds interactive work of class low"
    verdict = arrive(on("r1"), 1, **BULK).verdict
    assert verdict.rung == "r1"
    assert verdict.detail == "rung r1 of ladder small@1 stops bulk work where interactive work shares the replicas"


def test_a_pool_of_its_own_still_takes_bulk_that_a_shared_one_does_not() -> None:
    controller = on("r1", pool_on(LADDER), pool_on(None, "own", frozenset({Lane.BULK})))
    answer = arrive(controller, 1, **BULK)
    assert (type(answer), answer.replica) == (Dispatch, "own-1")


def test_the_refused_one_is_foreseen_as_if_there_were_no_rung() -> None:
    """One runs with all 86,400 tokens, so the next of 500 would wait; the rung's 300 s are longer."""
    controller = on(None, decode_seconds_per_token=0.0001, prefill_tokens_per_second=1e6)
    arrive(controller, 1, 3_000, 83_400)
    held(controller, "r2", until=300.0)
    like_it = arrive(controller, 2, asked_class=PriorityClass.NORMAL)
    shed = arrive(controller, 3, **LOW).verdict
    assert isinstance(like_it, Enqueue | Refuse)
    assert shed.reason is Reason.SHED_PRIORITY
    assert shed.delay is not None
    assert shed.retry_after_seconds == max(300.0, shed.delay.wait_seconds)


@pytest.mark.parametrize(
    ("asked", "granted", "told"),
    [(1_000, 256, ("cap_output",)), (256, 256, ()), (100, 100, ()), (None, 256, ("cap_output",))],
)
def test_ceilings_above_the_rungs_are_lowered_to_it_and_only_these_are_told(
    asked: int | None, granted: int, told: tuple[str, ...]
) -> None:
    """400 input tokens: the reservation follows the ceiling."""
    verdict = arrive(on("r3"), 1, 400, asked).verdict
    assert (verdict.output_ceiling_tokens, verdict.degradations) == (granted, told)
    assert verdict.reservation.total_tokens == 400 + granted


def test_who_declines_to_be_degraded_is_refused_where_its_ceiling_would_be_lowered() -> None:
    controller = on("r3")
    verdict = arrive(controller, 1, 400, 1_000, declines_degrading=True).verdict
    assert (verdict.reason, verdict.rung, verdict.degradations) == (Reason.DEGRADATION_DECLINED, "r3", ())
    assert verdict.retry_after_seconds == 300.0
    assert verdict.detail == (
        "rung r3 of ladder small@1 grants 256 of 1,000 output tokens, and the request declines to be degraded"
    )
    assert isinstance(arrive(controller, 2, 400, 200, declines_degrading=True), Dispatch)


def test_who_declines_goes_to_a_pool_that_changes_nothing() -> None:
    controller = on("r3", pool_on(LADDER), pool_on(None, "other"))
    answer = arrive(controller, 1, 400, 1_000, declines_degrading=True)
    assert (answer.replica, answer.verdict.output_ceiling_tokens) == ("other-1", 1_000)


def test_what_can_never_be_served_is_told_so_whatever_rung_is_in_force() -> None:
    assert arrive(on("r4"), 1, 200_000, 100, **BULK).verdict.reason is Reason.CONTEXT_LIMIT
    assert arrive(on("r3"), 1, 131_000, 1_000, **BULK).verdict.reason is Reason.CONTEXT_LIMIT


def test_what_a_rung_moved_comes_past_no_rung_that_holds_it_back_where_it_came_from() -> None:
    small = PoolPolicy("small", "s", frozenset(), frozenset({Lane.INTERACTIVE}))
    controller = on("r2", pool_on(LADDER), small)
    moved = replace(request(1, model="s", **LOW), moved_from="main", degradations=("smaller_model",))
    verdict = controller.assess(moved, 0.0)
    assert (verdict.reason, verdict.rung, verdict.pool) == (Reason.SHED_PRIORITY, "r2", "small")
    assert verdict.degradations == ("smaller_model",)
    kept = replace(moved, asked_class=PriorityClass.NORMAL)
    assert controller.assess(kept, 0.0).reason is None
