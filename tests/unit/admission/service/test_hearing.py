"""What a pool's ladder and its estimates hear of requests, through the controller: one window of a minute at a time."""

from typing import Any

import pytest

from fakes.door import arrive, queueing_lanes, request, spec
from fakes.rungs import STOP_BULK, cap, held, ladder_of, policy_on, pool_on
from llmshed.admission.actions import Dispatch, Enqueue, Evict, Refuse
from llmshed.admission.controller import AdmissionController
from llmshed.admission.echo import Arrival
from llmshed.admission.events import Arrived, Cancelled, Finished, FirstToken, NotSent, ReplicaUp, Tick
from llmshed.admission.policy import PoolPolicy, TenantPolicy
from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.ladder.standing import WindowSummary

LADDER = ladder_of(STOP_BULK, cap(100), sample_minimum=1)
BRISK: dict[str, Any] = {
    "gross_ceiling_tokens": 10_000,
    "guard_band_ratio": 0.0,
    "prefill_tokens_per_second": 1e6,
    "decode_seconds_per_token": 0.004,
}
"""10,000 tokens; an answer of 1,000 takes 4 s."""


def on_ladder(*pools: PoolPolicy, **budget: Any) -> AdmissionController:
    pools = pools or (pool_on(LADDER),)
    tenants = {"acme": TenantPolicy("acme", top_class=PriorityClass.HIGH)}
    controller = AdmissionController(policy_on(*pools, tenants=tenants, lanes=queueing_lanes(requests=1)))
    for pool in pools:
        controller.handle(ReplicaUp(spec(f"{pool.name}-1", pool=pool.name, **(BRISK | budget))), 0.0)
    return controller


def window(controller: AdmissionController, pool: int = 0, at: float = 60.0) -> WindowSummary:
    controller.handle(Tick(), at)
    standing = controller.state(at).pools[pool].ladder
    assert standing is not None
    assert standing.window is not None
    return standing.window


def busy(controller: AdmissionController) -> None:
    """Let one run with 7,000 of the 10,000 tokens: bulk, for its prompt is longer than those of interactive work."""
    assert isinstance(arrive(controller, 1, 6_000, 1_000), Dispatch)
    controller.handle(FirstToken(1), 0.1)


def test_who_starts_at_once_waited_for_nothing() -> None:
    controller = on_ladder()
    assert isinstance(arrive(controller, 1), Dispatch)
    assert (window(controller).arrivals, window(controller).signal_seconds) == (1, 0.0)


def test_who_is_sent_from_the_queue_counts_with_its_wait() -> None:
    controller = on_ladder()
    busy(controller)
    assert isinstance(arrive(controller, 2, 3_500, 500, now=1.0), Enqueue)
    assert isinstance(controller.handle(Finished(1, 500), 4.0)[-1], Dispatch)
    seen = window(controller)
    assert seen.arrivals == 1
    assert seen.signal_seconds == pytest.approx(3.0, rel=0.01)


def test_whose_client_leaves_the_queue_counts_with_its_wait() -> None:
    controller = on_ladder()
    busy(controller)
    arrive(controller, 2, 3_500, 500, now=1.0)
    controller.handle(Cancelled(2, sent=False), 6.0)
    seen = window(controller)
    assert seen.arrivals == 1
    assert seen.signal_seconds == pytest.approx(5.0, rel=0.01)


def test_whose_wait_is_over_counts_with_all_of_it_however_late_it_is_found_over() -> None:
    controller = on_ladder()
    busy(controller)
    arrive(controller, 2, 3_500, 500, now=1.0)
    (evicted,) = controller.handle(Tick(), 30.0)
    assert isinstance(evicted, Evict)
    told = evicted.verdict.delay
    assert told is not None
    seen = window(controller)
    assert seen.arrivals == 1
    assert seen.signal_seconds == pytest.approx(max(10.0, told.wait_seconds), rel=0.01)


def test_who_gives_its_place_away_counts_with_what_it_would_have_waited_on() -> None:
    controller = on_ladder()
    busy(controller)
    arrive(controller, 2, 3_500, 500, now=1.0, asked_class=PriorityClass.LOW)
    evicted, queued = controller.handle(Arrived(request(3, 3_500, 500, asked_class=PriorityClass.HIGH)), 1.5)
    assert (type(evicted), type(queued)) == (Evict, Enqueue)
    assert isinstance(evicted, Evict)
    told = evicted.verdict.delay
    assert told is not None
    assert told.wait_seconds > 1.0
    controller.handle(Cancelled(3, sent=False), 1.5)
    seen = window(controller)
    assert seen.arrivals == 2
    assert seen.signal_seconds == pytest.approx(told.wait_seconds, rel=0.01)


def test_demand_is_what_first_arrivals_ask_for_and_what_is_let_in_is_told_apart() -> None:
    """Of 500, 1,400 and 8,000 tokens, in a minute; a repeat, and what could never be served, are no demand."""
    controller = on_ladder()
    held(controller, "r2")
    arrive(controller, 1, 400, 100)
    assert arrive(controller, 2, 400, 1_000).verdict.reservation.total_tokens == 500
    assert isinstance(arrive(controller, 3, 7_000, 1_000, asked_intent=Intent.BULK, fingerprint="a"), Refuse)
    again = arrive(controller, 4, 7_000, 1_000, asked_intent=Intent.BULK, fingerprint="a", now=1.0)
    assert again.verdict.arrival is Arrival.REPEAT
    assert isinstance(arrive(controller, 5, 90_000, 1_000), Refuse)
    assert window(controller).offered_tokens_per_second == pytest.approx((500 + 1_400 + 8_000) / 60.0)


def test_what_a_rung_sent_elsewhere_is_demand_where_it_came_from_and_waits_where_it_is() -> None:
    small = PoolPolicy("small", "s", frozenset(), frozenset({Lane.INTERACTIVE}), LADDER)
    controller = on_ladder(pool_on(LADDER), small)
    assert isinstance(arrive(controller, 1, 400, 200, model="s", moved_from="main"), Dispatch)
    came_from, is_in = window(controller), window(controller, 1)
    assert (came_from.arrivals, is_in.arrivals) == (0, 1)
    assert came_from.offered_tokens_per_second == pytest.approx(10.0)
    assert is_in.offered_tokens_per_second == 0.0


def test_a_drill_is_no_arrival_and_no_demand_and_has_the_ceiling_that_it_asks_for() -> None:
    controller = on_ladder()
    held(controller, "r2")
    admitted = arrive(controller, 1, 400, 1_000, drilled=True).verdict
    assert (admitted.output_ceiling_tokens, admitted.degradations) == (1_000, ())
    seen = window(controller)
    assert (seen.arrivals, seen.offered_tokens_per_second) == (0, 0.0)


def test_a_second_try_of_the_gateway_is_no_second_arrival() -> None:
    controller = on_ladder()
    controller.handle(ReplicaUp(spec("main-2", **BRISK)), 0.0)
    arrive(controller, 1)
    assert isinstance(controller.handle(NotSent(1), 1.0)[-1], Dispatch)
    assert window(controller).arrivals == 1


def test_a_rung_promises_no_room_and_is_no_ghost_to_follow() -> None:
    controller = on_ladder()
    busy(controller)
    held(controller, "r1")
    refused = arrive(controller, 2, 5_000, 1_000, asked_intent=Intent.BULK, now=1.0)
    assert isinstance(refused, Refuse)
    assert refused.verdict.delay is not None
    (pool,) = controller.state(1.0).pools
    assert (pool.ghosts, set(pool.promised_seconds)) == (0, {0.0})
