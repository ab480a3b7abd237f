"""Work that waits, as events in and actions out: order of service, bounds, who passes whom, who has to go.

Unless said otherwise one replica lends 10,000 tokens; its prompts go in at once and a token takes 20 ms.
"""

from typing import Any

import pytest

from fakes.door import door, policy, queueing_lanes, request, spec
from fakes.stub_engines import Engines
from llmshed.admission.events import Cancelled, PolicyChanged
from llmshed.admission.policy import BulkShare, ReplicaSpec, TenantPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, PriorityClass
from llmshed.admission.verdict import Decision

HIGH, NORMAL, LOW = PriorityClass
TENANTS = {name: TenantPolicy(name, top_class=HIGH) for name in ("acme", "bolt", "core")}


def small(name: str = "r1", **changes: Any) -> ReplicaSpec:
    given = {"gross_ceiling_tokens": 10_000, "guard_band_ratio": 0.0, "decode_seconds_per_token": 0.02}
    return spec(name, **given | changes)


def engines(*specs: ReplicaSpec, **lanes: Any) -> Engines:
    return Engines(door(*specs or (small(),), tenants=TENANTS, lanes=queueing_lanes(**lanes)))


def fill(run: Engines, requests: int = 10) -> None:
    """Fill the budget with interactive requests of 1,000 tokens that end one after the other, from about 1 s on."""
    for number in range(requests):
        run.come(1_000 - 50 * (number + 1), 50 * (number + 1))
    run.run(run.now)
    assert run.running == requests


def dispatched(run: Engines) -> list[int]:
    """Return those that waited and were dispatched, in the order of their dispatch."""
    served = [(one.dispatched_at, key) for key, one in run.stories.items() if one.queued and one.dispatched_at]
    return [key for _, key in sorted(served)]


def test_the_worked_example_with_a_real_queue() -> None:
    """96,000 - 9,600 - 58,000 active - 8,000 queued = 20,400: behind it 18,000 fits, and 23,000 waits for more."""
    shares = BulkShare(reserved_max_ratio=1.0)
    run = engines(spec(prefill_tokens_per_second=10_000.0, decode_seconds_per_token=0.02, bulk=shares))
    run.come(57_000, 1_000, asked_intent=Intent.BULK)
    chat = [run.come(3_500, 500) for _ in range(2)]  # wait, since that prompt has filled the prefill window
    run.run(0.0)
    assert [run.stories[key].queued for key in chat] == [True, True]
    for output, input_tokens, fits in ((4_000, 14_000, True), (4_000, 19_000, False)):
        verdict = run.controller.assess(request(99, input_tokens, output), 0.0)
        assert verdict.decision is Decision.QUEUE
        assert verdict.equation is not None
        assert verdict.reservation is not None
        assert verdict.delay is not None
        assert (verdict.equation.active_tokens, verdict.equation.queued_tokens) == (58_000, 8_000)
        assert verdict.equation.headroom_tokens == 20_400
        assert verdict.equation.fits(verdict.reservation) is fits
        assert (verdict.delay.release_seconds == 0.0) is fits


@pytest.mark.parametrize("held", ["seats", "tokens"])
def test_what_fits_is_dispatched_and_the_rest_waits_for_what_comes_free(held: str) -> None:
    run = engines(small(hard_cap_sequences=10) if held == "seats" else small())
    fill(run)
    later = [run.come(900, 100) for _ in range(3)]
    run.run(0.0)
    assert all(run.stories[key].queued for key in later)
    run.run(60.0)
    assert dispatched(run) == later
    ended = sorted(one.done_at or 0.0 for one in run.stories.values())
    assert [run.stories[key].dispatched_at for key in later] == ended[:3]  # at the instant at which room came free


def test_a_residence_ends_to_the_instant() -> None:
    run = engines(residence_seconds=10.0)
    run.output_tokens = lambda _, ceiling: 10_000 + ceiling  # nothing ever comes free
    fill(run)
    waits = [run.come(900, 100, at=at) for at in (0.5, 0.75, 1.0)]
    run.run(10.49)
    assert [run.stories[key].refused_at for key in waits] == [None] * 3
    run.run(60.0)
    for key, at in zip(waits, (10.5, 10.75, 11.0), strict=True):
        story = run.stories[key]
        assert story.refused_at == at
        assert story.verdict is not None
        assert (story.verdict.reason, story.verdict.status) == (Reason.QUEUE_TIMEOUT, 429)
        assert story.verdict.retry_after_seconds is not None


def test_its_own_deadline_ends_a_wait_at_the_last_useful_start() -> None:
    """A prompt of 900 tokens takes 0.9 s at the rate that is assumed."""
    run = engines()
    run.output_tokens = lambda _, ceiling: 10_000 + ceiling
    fill(run)
    key = run.come(900, 100, first_token_deadline=6.0)
    run.run(60.0)
    story = run.stories[key]
    assert story.queued
    assert story.refused_at == pytest.approx(5.1)
    assert run.reason(key) is Reason.DEADLINE_INFEASIBLE


def test_a_client_that_leaves_the_queue_gives_its_place_back() -> None:
    run = engines(requests=1)
    fill(run)
    first, second = run.come(900, 100), run.come(900, 100)
    run.run(0.0)
    assert run.reason(second) is Reason.QUEUE_FULL
    assert run.tell(Cancelled(first, sent=False)) == []
    third = run.come(900, 100)
    run.run(0.0)
    assert run.stories[third].queued
    run.run(60.0)
    assert dispatched(run) == [third]


def test_classes_go_in_their_order_and_in_a_class_who_came_first() -> None:
    run = engines()
    fill(run)
    keys = [run.come(900, 100, asked_class=cls) for cls in (LOW, NORMAL, HIGH, LOW, NORMAL, HIGH)]
    run.run(60.0)
    assert dispatched(run) == [keys[at] for at in (2, 5, 1, 4, 0, 3)]


def test_tenants_of_one_class_take_turns_by_their_weight() -> None:
    """One sends six before the other sends its three, which has twice the weight: of what is served it gets two."""
    tenants = {"acme": TenantPolicy("acme"), "bolt": TenantPolicy("bolt", weight=2.0)}
    run = Engines(door(small(), tenants=tenants, lanes=queueing_lanes()))
    fill(run)
    keys = [run.come(900, 100, tenant=tenant) for tenant in ["acme"] * 6 + ["bolt"] * 4]
    run.run(60.0)
    order = [run.stories[key].request.tenant for key in dispatched(run)]
    assert set(dispatched(run)) == set(keys)
    assert order[:6].count("bolt") == 4


def test_a_conversation_goes_before_new_ones_of_its_tenant_until_they_have_aged() -> None:
    run = engines()
    run.output_tokens = lambda one, ceiling: 350 if one.key == 1 else 10_000 + ceiling
    fill(run)  # the first ends at about 7 s
    new = run.come(900, 100, at=1.0)  # is level with conversations from 6 s on
    fresh = run.come(900, 100, at=5.0)
    goes_on = run.come(900, 100, at=5.5, continuing=True)
    run.run(8.0)
    assert dispatched(run) == [new]
    run.tell(Cancelled(2, sent=False))
    run.run(8.1)
    run.tell(Cancelled(3, sent=False))
    assert dispatched(run) == [new, goes_on, fresh]


def test_a_head_that_does_not_fit_is_passed_until_half_its_residence() -> None:
    """A thousand comes free every second. The head wants 5,000 and is passed for 5 s, then everything accrues to it."""
    run = engines()
    fill(run)
    large = run.come(4_096, 904)
    small_ones = [run.come(900, 100, at=0.1 * number) for number in range(1, 100)]
    run.run(12.0)
    story = run.stories[large]
    assert story.queued
    assert story.dispatched_at is not None
    assert 5.0 < story.dispatched_at <= 10.0
    before = [key for key in small_ones if (run.stories[key].dispatched_at or 99.0) < story.dispatched_at]
    assert len(before) >= 3
    assert max(run.stories[key].dispatched_at or 0.0 for key in before) <= 5.1


def test_at_a_full_queue_the_newest_of_the_lowest_class_has_to_go() -> None:
    run = engines(requests=4)
    fill(run)
    keys = [run.come(900, 100, asked_class=cls) for cls in (LOW, NORMAL, LOW, NORMAL)]
    high = [run.come(900, 100, asked_class=HIGH) for _ in range(5)]
    run.run(0.0)
    assert [run.reason(key) for key in keys] == [Reason.SHED_PRIORITY] * 4
    assert [run.stories[key].queued for key in high] == [True] * 4 + [False]
    low = run.come(900, 100, asked_class=LOW)
    run.run(0.0)
    assert run.reason(low) is Reason.QUEUE_FULL


def test_at_a_full_queue_the_tenant_with_most_of_it_makes_room() -> None:
    run = engines(requests=4)
    fill(run)
    most = [run.come(900, 100, tenant="acme") for _ in range(4)]
    other = [run.come(900, 100, tenant="bolt") for _ in range(3)]
    run.run(0.0)
    assert [run.stories[key].refused_at is not None for key in most] == [False, False, True, True]
    assert [run.stories[key].refused_at is not None for key in other] == [False, False, True]
    assert [run.reason(key) for key in (*most[2:], other[2])] == [Reason.QUEUE_FULL] * 3


def test_a_lane_that_fills_its_queue_takes_nothing_from_the_other() -> None:
    run = engines(requests=2)
    fill(run)
    for _ in range(3):
        run.come(900, 100)
    bulk = run.come(5_000, 100, asked_intent=Intent.BULK)
    run.run(0.0)
    assert run.stories[bulk].queued


def test_a_tenants_quota_counts_what_waits() -> None:
    tenants = {"acme": TenantPolicy("acme", max_concurrent_requests=12), "bolt": TenantPolicy("bolt")}
    run = Engines(door(small(), tenants=tenants, lanes=queueing_lanes()))
    fill(run)
    keys = [run.come(900, 100) for _ in range(3)]
    other = run.come(900, 100, tenant="bolt")
    run.run(0.0)
    assert [run.stories[key].queued for key in (*keys, other)] == [True, True, False, True]
    assert run.reason(keys[2]) is Reason.TENANT_QUOTA
    run.tell(Cancelled(keys[0], sent=False))
    again = run.come(900, 100)
    run.run(0.0)
    assert run.stories[again].queued


def test_who_waits_keeps_the_policy_that_it_came_under() -> None:
    run = engines(residence_seconds=10.0)
    run.output_tokens = lambda _, ceiling: 10_000 + ceiling
    fill(run)
    before = run.come(900, 100)
    run.run(0.0)
    run.tell(PolicyChanged(policy(tenants=TENANTS, lanes=queueing_lanes(residence_seconds=4.0))))
    after = run.come(900, 100)
    run.run(20.0)
    assert [run.stories[key].refused_at for key in (before, after)] == [10.0, 4.0]
