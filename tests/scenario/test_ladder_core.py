"""The controller on its ladder before stub engines: bursts, steady overload, early refusal, and who waits at a step.

One replica of 8,000 tokens, an answer's token in 40 ms: what comes here asks for 1,200 tokens in the mean, so some 0.35
requests a second are all that it serves.
"""

import random
from itertools import pairwise
from typing import Any

import pytest

from fakes.door import queueing_lanes, spec
from fakes.rungs import SHED_LOW, SHED_NORMAL, STOP_BULK, cap, held, ladder_of, policy_on, pool_on
from fakes.stub_engines import Engines
from llmshed.admission.actions import RungChanged
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import ReplicaUp, RungHeld
from llmshed.admission.policy import PoolPolicy, TenantPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.admission.verdict import Verdict
from llmshed.ladder.model import Ladder
from llmshed.ladder.standing import Cause, Hold

HIGH, NORMAL, LOW = PriorityClass
FULL = ladder_of(STOP_BULK | {"entry": {"windows": 3}}, cap(200), SHED_LOW, SHED_NORMAL)
SHEDDING = ladder_of(STOP_BULK, SHED_LOW, SHED_NORMAL, sample_minimum=10)
ONE_FOLD = 0.35
"""Requests a second that the replica just serves."""
MINUTE = 60.0
TENANTS = {"acme": TenantPolicy("acme", top_class=HIGH)}


def engines(ladder: Ladder, *more: PoolPolicy, requests: int = 20, residence_seconds: float = 0.9) -> Engines:
    """Return a shared pool on a ladder, and further pools, with a replica each."""
    pools = (pool_on(ladder), *more)
    lanes = queueing_lanes(requests, residence_seconds, max(30.0, residence_seconds))
    controller = AdmissionController(policy_on(*pools, tenants=TENANTS, lanes=lanes))
    for pool in pools:
        budget = {"gross_ceiling_tokens": 8_000, "guard_band_ratio": 0.0, "decode_seconds_per_token": 0.04}
        made = spec(f"{pool.name}-1", pool=pool.name, prefill_tokens_per_second=10_000.0, **budget)
        controller.handle(ReplicaUp(made), 0.0)
    return Engines(controller, decode_seconds_per_token=0.04, check_every=1_000)


def crowd(run: Engines, per_second: float, begin: float, end: float, *, bulk_share: float = 0.3) -> None:
    """Let requests of all classes come at Poisson times: bulk of 2,500 tokens, interactive ones of 830, in the mean."""
    rng = random.Random(f"{per_second} {begin}")  # noqa: S311 - one crowd for one call
    at = begin
    while (at := at + rng.expovariate(per_second)) < end:
        changes: dict[str, Any] = {"asked_class": rng.choice([HIGH, NORMAL, NORMAL, LOW, LOW]), "at": at}
        if rng.random() < bulk_share:
            run.come(rng.choice([500, 1_500, 4_000]), 500, asked_intent=Intent.BULK, **changes)
        else:
            run.come(rng.choice([200, 500, 900]), rng.choice([100, 300, 500]), **changes)


def in_force(run: Engines) -> int:
    return len(run.controller.rungs_in_force("main"))


def told(run: Engines, key: int) -> Verdict:
    verdict = run.stories[key].verdict
    assert verdict is not None
    return verdict


@pytest.mark.slow
def test_a_steady_overload_does_not_cycle() -> None:
    """Three hours of twice what is served: each hour at most one step back that is climbed again."""
    run = engines(FULL)
    crowd(run, 2 * ONE_FOLD, 0.0, 180 * MINUTE)
    run.run(180 * MINUTE)
    back = [at for at, step in run.steps if step.cause is Cause.DESCENDED]
    assert all(later - earlier > 60 * MINUTE for earlier, later in pairwise(back))
    assert in_force(run) >= 1
    assert run.steps[0][0] <= 5 * MINUTE
    assert max(step.after for _, step in run.steps) < len(FULL.rungs)  # it stays where the overload is over


@pytest.mark.slow
def test_a_burst_climbs_and_leaves_nothing_behind() -> None:
    """Seven minutes of eight times what is served: two windows a rung on the way up, five calm ones a rung back."""
    run = engines(SHEDDING)
    crowd(run, 0.6 * ONE_FOLD, 0.0, 5 * MINUTE, bulk_share=0.0)
    crowd(run, 8 * ONE_FOLD, 5 * MINUTE, 12 * MINUTE)
    crowd(run, 0.6 * ONE_FOLD, 12 * MINUTE, 40 * MINUTE, bulk_share=0.0)
    run.run(5 * MINUTE)
    assert run.steps == []
    run.run(12 * MINUTE)
    assert [(at, step.after) for at, step in run.steps] == [(7 * MINUTE, 1), (9 * MINUTE, 2), (11 * MINUTE, 3)]
    run.run(40 * MINUTE)
    # A window more at first, to end what the burst left.
    back = [(at, step.after) for at, step in run.steps[3:]]
    assert [after for _, after in back] == [2, 1, 0]
    assert all(at <= (12 + 1 + 5 * number) * MINUTE for number, (at, _) in enumerate(back, 1))
    late = [story for story in run.stories.values() if story.came_at > 28 * MINUTE]
    assert late
    assert all(story.verdict is None or story.verdict.rung is None for story in late)


@pytest.mark.slow
def test_early_refusal_keeps_waits_short_and_hides_no_overload() -> None:
    """Whoever is served waited for half the objective of 0.6 s; the refused count with the wait they were spared."""
    run = engines(SHEDDING, requests=1, residence_seconds=0.3)
    crowd(run, 6 * ONE_FOLD, 0.0, 10 * MINUTE, bulk_share=0.0)
    run.run(10 * MINUTE)
    waits = [s.dispatched_at - s.came_at for s in run.stories.values() if s.dispatched_at is not None]
    assert max(waits) <= 0.3
    assert [step.after for _, step in run.steps][:3] == [1, 2, 3]
    assert run.steps[0][0] == 2 * MINUTE


def busy(run: Engines) -> None:
    """Let the shared replica run one of 7,000 tokens."""
    run.come(6_000, 1_000)
    run.run(0.1)


def hold(run: Engines, rung: str) -> None:
    run.tell(RungHeld("main", Hold(rung, 1e6, "a test")))


def test_who_waits_and_is_held_back_by_a_new_rung_is_sent_away_and_nobody_else() -> None:
    run = engines(SHEDDING, residence_seconds=1e5)
    busy(run)
    bulk = run.come(5_000, 500)
    low, normal = (run.come(1_500, 500, asked_class=cls) for cls in (LOW, NORMAL))
    run.run(0.1)
    assert all(run.stories[key].queued for key in (bulk, low, normal))
    hold(run, "r1")
    assert (run.reason(bulk), told(run, bulk).rung) == (Reason.SHED_PRIORITY, "r1")
    assert [run.stories[key].refused_at for key in (low, normal)] == [None, None]
    hold(run, "r2")
    assert (run.reason(low), told(run, low).rung) == (Reason.SHED_PRIORITY, "r2")
    assert run.stories[normal].refused_at is None
    run.run(60.0)
    assert run.stories[normal].dispatched_at is not None
    assert run.controller.check() == ()


def test_bulk_that_waits_goes_on_in_a_pool_of_its_own() -> None:
    """It waits for the shared pool, which is free first, and then for the other one's answers of 40 s."""
    run = engines(SHEDDING, pool_on(None, "own", frozenset({Lane.BULK})), residence_seconds=1e5)
    busy(run)
    run.come(6_000, 1_000, asked_intent=Intent.BULK)
    run.run(5.0)
    waits = run.come(5_000, 500)
    run.run(5.1)
    assert told(run, waits).pool == "main"
    hold(run, "r1")
    assert run.stories[waits].refused_at is None
    run.run(60.0)
    assert run.stories[waits].replica == "own-1"


def test_who_waits_keeps_the_ceiling_that_it_was_told() -> None:
    run = engines(FULL, residence_seconds=1e5)
    busy(run)
    before = run.come(1_500, 500)
    run.run(0.1)
    hold(run, "r2")
    after = run.come(1_500, 500)
    run.run(0.1)
    run.controller.handle(RungHeld("main", Hold("r1", 1e6, "a test")), run.now)
    run.run(60.0)
    assert [told(run, key).output_ceiling_tokens for key in (before, after)] == [500, 200]
    assert [told(run, key).degradations for key in (before, after)] == [(), ("cap_output",)]
    assert all(run.stories[key].dispatched_at for key in (before, after))


def test_a_step_is_told_before_what_follows_from_it() -> None:
    run = engines(SHEDDING, residence_seconds=1e5)
    busy(run)
    run.come(5_000, 500)
    run.run(0.1)
    first, *rest = held(run.controller, "r1", now=run.now)
    assert isinstance(first, RungChanged)
    assert len(rest) == 1
