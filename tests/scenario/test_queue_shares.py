"""Who gets how much of a full replica: bulk beside interactive work, tenants beside each other, repeats.

Bounds are those of the reliability goals R14 and R16; no ladder is in force. The engine is slow, so that a few thousand
requests are ten times what it can serve for minutes.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random
from statistics import mean, variance
from typing import Any

import pytest

from fakes.door import door, queueing_lanes, spec
from fakes.stub_engines import Engines, Story
from llmshed.admission.echo import Arrival
from llmshed.admission.policy import TenantPolicy
from llmshed.admission.request import Intent, Lane

WINDOW_SECONDS = 60.0
SAFE_TOKENS = 27_000


def engines(tenants: Sequence[str], rate: float | None, decode_seconds: float, **lanes: Any) -> Engines:
    """Return a run before one shared replica of 27,000 tokens."""
    one = spec(gross_ceiling_tokens=30_000, prefill_tokens_per_second=rate, decode_seconds_per_token=decode_seconds)
    controller = door(one, tenants={name: TenantPolicy(name) for name in tenants}, lanes=queueing_lanes(**lanes))
    run = Engines(controller, rate or 10_000.0, decode_seconds, check_every=500)
    lengths = Random(3)  # noqa: S311 - one seed, one run
    run.output_tokens = lambda _, ceiling: lengths.randint(1, ceiling)
    return run


@pytest.mark.slow
def test_bulk_keeps_its_floor_under_ten_times_the_interactive_work() -> None:
    """At best 1.1 interactive requests of 1,200 tokens are served a second, each for some 20 s; 11 come, and bulk."""
    rate, seconds, residence_seconds = 1_000.0, 12 * WINDOW_SECONDS, 540.0
    rng = Random(1)  # noqa: S311 - one seed, one run
    run = engines(["acme"], rate, 0.2, residence_seconds=9.0, bulk_residence_seconds=residence_seconds)
    at = 0.0
    while at < seconds:
        at += rng.expovariate(11.0)
        run.come(1_000, 200, at=at)
        if rng.random() < 0.03:
            run.come(1_500, 50, at=at, asked_intent=Intent.BULK)
    run.run(seconds)
    prompts = {lane: [0] * 12 for lane in Lane}
    for one in run.stories.values():
        if one.dispatched_at is not None:
            assert one.verdict is not None
            prompts[one.verdict.lane or Lane.OVERFLOW][int(one.dispatched_at / WINDOW_SECONDS)] += (
                one.request.input_tokens
            )
        if one.request.asked_intent is Intent.BULK:
            until = one.dispatched_at or one.refused_at or seconds
            assert until - one.came_at <= residence_seconds + 1.0
    floor_tokens = 0.05 * rate * WINDOW_SECONDS
    bulk = prompts[Lane.BULK]
    for begin in range(1, 3):
        assert sum(bulk[begin : begin + 10]) >= 0.9 * 10 * floor_tokens, bulk
    assert sum(prompts[Lane.INTERACTIVE]) > 4 * sum(bulk)
    assert run.most_active <= SAFE_TOKENS
    assert run.controller.check() == ()


@pytest.mark.slow
@pytest.mark.parametrize("intent", [Intent.INTERACTIVE, pytest.param(Intent.BULK, marks=pytest.mark.soak)])
def test_a_tenant_at_ten_times_takes_nothing_of_the_others_share(intent: Intent) -> None:
    """Of about 2 a second that can be served each of five asks for 0.8, and one of them for 8."""
    rng = Random(2)  # noqa: S311 - one seed, one run
    seconds = 280.0
    run = engines(names := "abcde", None, 0.1, residence_seconds=20.0, bulk_residence_seconds=20.0)
    for name in names:
        per_second = 8.0 if name == "a" else 0.8
        at = rng.expovariate(per_second)
        while at < seconds:
            run.come(1_000, 200, at=at, tenant=name, asked_intent=intent)
            at += rng.expovariate(per_second)
    run.run(seconds)
    served = Counter(one.request.tenant for one in run.stories.values() if 40.0 < (one.dispatched_at or 0.0) < seconds)
    fair = sum(served.values()) / len(names)
    assert fair > 80
    assert all(served[name] >= 0.9 * fair for name in names), served


@pytest.mark.slow
def test_a_hundred_clients_that_come_again_at_once_gain_nothing_and_share_alike() -> None:
    """Each sends its next request when one is done, and the same again a second after a refusal, told to wait or not.

    The engine takes 20 prompts of 500 tokens a second, so each of the hundred has its turn every 5 s.
    """
    seconds = 60.0
    names = [f"client{number:02d}" for number in range(100)]
    run = engines(names, 10_000.0, 0.02, requests=40, residence_seconds=3.0)
    bodies: Counter[str] = Counter()

    def ask(name: str, at: float, body: str) -> None:
        if at < seconds:
            run.come(500, 50, at=at, tenant=name, fingerprint=f"{name}-{body}")

    def again(_: Engines, story: Story) -> None:
        ask(story.request.tenant, run.now + 1.0, (story.request.fingerprint or "").rpartition("-")[2])

    run.refused = again
    for name in names:
        ask(name, 0.0, "0")
    done: set[int] = set()
    while run.now < seconds:
        run.run(run.now + 0.25)
        for key in [key for key, one in run.stories.items() if one.done_at is not None and key not in done]:
            done.add(key)
            name = run.stories[key].request.tenant
            bodies[name] += 1
            ask(name, run.now, str(bodies[name]))
    assert run.most_active <= SAFE_TOKENS
    assert run.controller.check() == ()
    served = [bodies[name] for name in names]
    fair = sum(served) / len(names)
    assert fair > 0.6 * seconds / 5.0
    assert variance(served) < fair / 2  # half of what chance alone would make of it
    for group in (served[:50], served[::2]):  # neither who is known first nor who comes first in each crowd is ahead
        assert mean(group) == pytest.approx(fair, rel=0.1)
    assert overtakers(run) == []


def overtakers(run: Engines) -> list[int]:
    """Return the repeats that were dispatched as they came, while a first arrival that had come before them waited."""
    seen: set[str | None] = set()
    firsts: list[Story] = []
    repeats: list[Story] = []
    for one in sorted(run.stories.values(), key=lambda story: story.came_at):
        (repeats if one.request.fingerprint in seen else firsts).append(one)
        seen.add(one.request.fingerprint)
    waited = [one for one in firsts if one.queued]
    return [
        one.request.key
        for one in repeats
        if one.dispatched_at == one.came_at
        and any(first.came_at < one.came_at < (first.dispatched_at or first.refused_at or 1e9) for first in waited)
    ]


def test_a_repeat_before_its_time_is_told_what_is_left() -> None:
    run = engines(["acme"], None, 0.02, residence_seconds=4.0, requests=2)
    for _ in range(20):
        run.come(1_000, 350)
    waits = [run.come(1_000, 350) for _ in range(2)]
    early = run.come(1_000, 350, fingerprint="body")
    run.run(0.0)
    told = run.stories[early].verdict
    assert told is not None
    assert told.reason is not None
    assert told.retry_after_seconds is not None
    again = run.come(1_000, 350, fingerprint="body", at=0.5)
    run.run(0.5)
    later = run.stories[again].verdict
    assert later is not None
    assert later.reason is told.reason
    assert later.retry_after_seconds == pytest.approx(told.retry_after_seconds - 0.5)
    assert all(run.stories[key].dispatched_at is None for key in waits)


def test_it_is_told_no_more_where_nobody_waits() -> None:
    """First arrivals filled the replica, which by their share would leave a repeat nothing; the promise has drained."""
    run = engines(["acme"], None, 0.02, residence_seconds=4.0, requests=0)
    run.output_tokens = lambda _, ceiling: ceiling
    for _ in range(20):
        run.come(1_000, 350)
    first, again = run.come(1_000, 350, fingerprint="body"), run.come(1_000, 350, fingerprint="body", at=6.0)
    run.run(6.0)
    told, later = run.stories[first].verdict, run.stories[again].verdict
    assert told is not None
    assert later is not None
    assert later.arrival is Arrival.EARLY
    assert (told.retry_after_seconds, later.retry_after_seconds) == (8.0, 2.0)


def test_a_repeat_passes_nobody_who_waits() -> None:
    """There is room for a small request while a large one waits: a first arrival passes it, a repeat does not."""
    run = engines(["acme"], None, 0.02, residence_seconds=20.0)
    for _ in range(21):
        run.come(1_000, 200)
    run.run(0.0)
    large = run.come(2_000, 400)
    repeat, first = run.come(400, 100, declared_repeats=1), run.come(400, 100)
    run.run(0.0)
    assert run.stories[large].queued
    assert run.stories[first].dispatched_at == 0.0
    assert run.stories[repeat].dispatched_at is None


def test_who_was_served_after_a_refusal_is_a_first_arrival_again() -> None:
    run = engines(["acme"], None, 0.02, requests=0)
    for _ in range(23):
        run.come(900, 250)
    refused = run.come(900, 250, fingerprint="body")
    run.run(60.0)
    served, again = run.come(900, 250, fingerprint="body"), run.come(900, 250, fingerprint="body")
    run.run(60.0)
    told = [run.stories[key].verdict for key in (refused, served, again)]
    assert [one.arrival for one in told if one is not None] == [Arrival.FIRST, Arrival.REPEAT, Arrival.FIRST]
    assert run.stories[served].dispatched_at == 60.0
