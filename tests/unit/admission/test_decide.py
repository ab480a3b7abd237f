"""One request, one verdict: which reason binds, in which order."""

import pytest

from fakes.door import LANES, arrive, door, policy, request, spec
from llmshed.admission.controller import AdmissionController
from llmshed.admission.decide import DRAINING_RETRY_SECONDS, NO_REPLICA_RETRY_SECONDS
from llmshed.admission.events import BudgetChanged, Draining, Event, ReplicaDown
from llmshed.admission.policy import LanePolicy, ModelLimits, PoolPolicy, ReplicaBudget, TenantPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.admission.service.choice import UNKNOWN_RETRY_SECONDS
from llmshed.admission.verdict import AcceptedMaximums, Advice, Decision, Verdict

SMALL = ModelLimits(4_095, 8_192)


def reason(controller: AdmissionController, *args: object, **changes: object) -> Reason | None:
    return controller.assess(request(1, *args, **changes), 0.0).reason  # type: ignore[arg-type]  # a builder's freedom


def test_an_admitting_verdict_carries_every_number() -> None:
    verdict = door(spec(overrun_chunk_tokens=1_024, profile="p@1")).assess(
        request(1, [1_000, 500], 1_500, copies=2, asked_class=PriorityClass.LOW), 0.0
    )
    assert verdict.decision is Decision.ADMIT
    assert verdict.status == 200
    assert (verdict.lane, verdict.intent, verdict.priority_class) == (Lane.BULK, Intent.INTERACTIVE, PriorityClass.LOW)
    assert verdict.reservation is not None
    # Two prompts, two copies each: 2 x 1,500 input, 4 x 1,500 output, 4 x 548 overrun.
    assert verdict.reservation.input_tokens == 3_000
    assert verdict.reservation.output_tokens == 6_000
    assert verdict.reservation.overrun_tokens == 2_192
    assert verdict.reservation.sequences == 4
    assert (verdict.replica, verdict.pool, verdict.profile) == ("r1", "main", "p@1")
    assert verdict.output_ceiling_tokens == 1_500


def test_the_overrun_ends_where_the_context_ends() -> None:
    verdict = door(spec(overrun_chunk_tokens=1_024, limits=ModelLimits(8_191, 8_192))).assess(
        request(1, 6_600, 1_500), 0.0
    )
    assert verdict.reservation is not None
    assert verdict.reservation.overrun_tokens == 8_192 - 6_600 - 1_500


@pytest.mark.parametrize(
    ("input_tokens", "output", "expected"),
    [
        (4_096, 10, Reason.CONTEXT_LIMIT),  # one more than the model takes as input
        (4_095, 4_098, Reason.CONTEXT_LIMIT),  # together one too many
        (4_095, 4_097, None),
        (100, 100_000, Reason.CONTEXT_LIMIT),  # TGI >= 3.1.1 would take it
        (4_095, None, None),
    ],
)
def test_the_models_limits(input_tokens: int, output: int | None, expected: Reason | None) -> None:
    assert reason(door(spec(limits=SMALL)), input_tokens, output) is expected


def test_the_context_of_the_roomiest_replica_counts() -> None:
    controller = door(spec("r1", limits=SMALL), spec("r2"))
    verdict = controller.assess(request(1, 20_000, 100), 0.0)
    assert (verdict.decision, verdict.replica) == (Decision.ADMIT, "r2")


def test_an_output_bound_of_lane_or_model() -> None:
    bounded = door(lanes=LANES | {Lane.BULK: LanePolicy(None, 2_000, 1_024)})
    assert reason(bounded, 10, 2_001) is Reason.OUTPUT_LIMIT
    assert reason(bounded, 10, 2_000) is None
    assert reason(door(spec(limits=ModelLimits(8_191, 8_192, 50))), 10, 51) is Reason.OUTPUT_LIMIT


def test_overflow_is_told_what_to_do() -> None:
    verdict = door(lanes=LANES | {Lane.BULK: LanePolicy(10_000, None, 1_024)}).assess(request(1, 10_001), 0.0)
    assert (verdict.reason, verdict.lane) == (Reason.LANE_LIMIT, Lane.OVERFLOW)
    assert verdict.advice == (Advice.SUMMARISE, Advice.SPLIT, Advice.DEDICATED_POOL)
    assert verdict.maximums is not None
    assert verdict.maximums.max_input_tokens == 10_000


def test_what_no_replica_could_ever_hold_is_not_told_to_come_back() -> None:
    for refused in (
        door(spec()).assess(request(1, 80_000, 6_401), 0.0),  # 86,401 of 86,400
        door(spec(hard_cap_sequences=3)).assess(request(1, 10, 10, copies=4), 0.0),
    ):
        assert (refused.reason, refused.retry_after_seconds) == (Reason.LANE_LIMIT, None)
    assert reason(door(spec()), 80_000, 6_400) is None


def test_a_derate_is_no_permanent_limit() -> None:
    controller = door(spec())
    controller.handle(BudgetChanged("r1", ReplicaBudget(10_000, 0.1, 64)), 0.0)
    verdict = controller.assess(request(1, 20_000, 100), 0.0)
    assert verdict.reason is Reason.TOKEN_BUDGET_EXHAUSTED
    assert verdict.retry_after_seconds == UNKNOWN_RETRY_SECONDS


def test_seats_bind_before_tokens_only_where_they_lack_everywhere() -> None:
    controller = door(spec("r1", hard_cap_sequences=1), spec("r2"))
    sent = [
        arrive(controller, key, *size).replica for key, size in enumerate([(90, 10), (80_000, 6_000), (80_000, 6_000)])
    ]
    assert sent == ["r2", "r1", "r2"]  # the most seats, the most tokens, the only seats
    full = controller.assess(request(3, 5_000, 100), 0.0)
    assert full.reason is Reason.TOKEN_BUDGET_EXHAUSTED
    one_seat = door(spec(hard_cap_sequences=1))
    arrive(one_seat, 1)
    assert reason(one_seat) is Reason.CONCURRENCY_LIMIT


def test_a_refusal_tells_when_enough_comes_free() -> None:
    controller = door(spec(prefill_tokens_per_second=1_000_000.0, decode_seconds_per_token=0.1))
    arrive(controller, 1, 40_000, 100)  # ends at 0.04 + 10
    arrive(controller, 2, 40_000, 200)  # ends at 0.08 + 20
    refused = controller.assess(request(3, 50_000, 100), 0.0)
    assert refused.retry_after_seconds == pytest.approx(20.08)
    assert controller.assess(request(3, 20_000, 100), 0.0).retry_after_seconds == pytest.approx(10.04)


def test_the_order_of_states() -> None:
    controller = door(spec())
    assert reason(door(pools=(PoolPolicy("main", "m", frozenset(), frozenset({Lane.INTERACTIVE})),)), 5_000) is (
        Reason.LANE_LIMIT
    )
    controller.handle(ReplicaDown("r1"), 0.0)
    down = controller.assess(request(1), 0.0)
    assert (down.reason, down.status, down.retry_after_seconds) == (Reason.NO_REPLICA, 503, NO_REPLICA_RETRY_SECONDS)
    assert reason(controller, 200_000) is Reason.CONTEXT_LIMIT  # still true while it is down
    controller.handle(Draining(), 0.0)
    draining = controller.assess(request(1), 0.0)
    assert (draining.reason, draining.retry_after_seconds) == (Reason.DRAINING, DRAINING_RETRY_SECONDS)


@pytest.mark.parametrize(
    ("controller", "events", "expected", "told"),
    [
        (AdmissionController(policy()), (), Reason.STARTING, AcceptedMaximums(4_096, 1_024, None)),
        (door(spec(pool="other")), (), Reason.STARTING, AcceptedMaximums(4_096, 1_024, None)),
        (door(spec(limits=SMALL)), (Draining(),), Reason.DRAINING, AcceptedMaximums(4_095, 1_024, 8_192)),
        (
            door(spec("r1", limits=SMALL), spec("r2")),
            (ReplicaDown("r1"), ReplicaDown("r2")),
            Reason.NO_REPLICA,
            AcceptedMaximums(4_096, 1_024, 131_072),
        ),
    ],
)
def test_who_finds_nobody_to_serve_it_is_told_the_limits_too(
    controller: AdmissionController, events: tuple[Event, ...], expected: Reason, told: AcceptedMaximums
) -> None:
    for event in events:
        controller.handle(event, 0.0)
    verdict = controller.assess(request(1), 0.0)
    assert (verdict.reason, verdict.lane, verdict.maximums) == (expected, Lane.INTERACTIVE, told)


def test_a_lane_that_no_pool_takes_is_told_with_the_limits_of_the_one_that_is_taken() -> None:
    fast = (PoolPolicy("main", "m", frozenset(), frozenset({Lane.INTERACTIVE})),)
    verdict = door(spec(limits=SMALL), pools=fast).assess(request(1, 5_000), 0.0)
    assert (verdict.reason, verdict.lane) == (Reason.LANE_LIMIT, Lane.BULK)
    assert verdict.maximums == AcceptedMaximums(4_095, 1_024, 8_192)
    assert door(pools=fast).assess(request(1, model="other"), 0.0).maximums is None


def test_before_the_first_replica_it_is_starting() -> None:
    assert reason(AdmissionController(policy())) is Reason.STARTING


def test_a_passed_deadline_is_told_even_where_room_is_free() -> None:
    assert reason(door(), deadline=0.0) is Reason.DEADLINE_INFEASIBLE
    assert reason(door(), first_token_deadline=0.0) is Reason.DEADLINE_INFEASIBLE


def test_a_deadline_leaves_time_for_prefill_and_answer_or_is_infeasible_at_once() -> None:
    """400 tokens at 1,000 a second take 0.4 s, and 100 tokens at 0.1 s each 10 s more."""
    rated = door(spec(prefill_tokens_per_second=1_000.0, decode_seconds_per_token=0.1))
    assert reason(rated, deadline=10.3) is Reason.DEADLINE_INFEASIBLE
    assert reason(rated, deadline=10.5) is None
    assert reason(rated, first_token_deadline=0.3) is Reason.DEADLINE_INFEASIBLE
    assert reason(rated, first_token_deadline=0.5) is None


def test_a_key_without_the_intent_is_forbidden() -> None:
    controller = door(tenants={"acme": TenantPolicy("acme", intents=frozenset({Intent.BULK}))})
    assert reason(controller, asked_intent=Intent.INTERACTIVE) is Reason.FORBIDDEN
    assert reason(controller, asked_intent=Intent.BULK) is None


def test_a_tenant_that_a_reload_took_away() -> None:
    assert reason(door(), tenant="gone") is Reason.UNAUTHENTICATED


def test_an_alias_is_the_model_and_another_name_is_not() -> None:
    assert reason(door(), model="alias") is None
    assert reason(door(), model="other") is Reason.LANE_LIMIT


def test_work_goes_where_most_is_free_among_pools_that_take_its_lane() -> None:
    pools = (
        PoolPolicy("fast", "m", frozenset(), frozenset({Lane.INTERACTIVE})),
        PoolPolicy("slow", "m", frozenset(), frozenset({Lane.BULK})),
    )
    controller = door(spec("f", pool="fast"), spec("s1", pool="slow"), spec("s2", pool="slow"), pools=pools)
    sent: list[str] = [arrive(controller, key, 9_000).replica for key in range(4)]
    assert sent == ["s1", "s2", "s1", "s2"]
    verdict: Verdict = controller.assess(request(9, 10), 0.0)
    assert verdict.replica == "f"
