"""One timer watches the steps of a relay: the limit of the present step is the only one that acts."""

import asyncio

from fakes.loops import on_both_loops
from llmshed.config.lanes import BulkLane, InteractiveLane
from llmshed.gateway.relay.timeouts import LaneTimeouts, Watch


def test_a_lane_gives_its_silences_and_a_token_its_objective() -> None:
    assert LaneTimeouts.of_lane(InteractiveLane()) == LaneTimeouts(60.0, 60.0, 0.1)
    assert LaneTimeouts.of_lane(BulkLane()) == LaneTimeouts(600.0, 120.0, 0.1)


def test_a_whole_answer_may_take_the_time_of_its_tokens() -> None:
    assert LaneTimeouts(60.0, 1.0, 0.1).whole_answer_seconds(1024) == 60.0 + 102.4


@on_both_loops
async def test_a_step_that_takes_too_long_has_its_own_cure_once() -> None:
    cured: list[str] = []
    watch = Watch()
    watch.expect_within(0.01, lambda: cured.append("read"))
    await asyncio.sleep(0.05)
    assert cured == ["read"]
    assert watch.expired
    watch.expect_within(0.001, lambda: cured.append("again"))
    await asyncio.sleep(0.02)
    assert cured == ["read"]


@on_both_loops
async def test_the_next_step_forgets_the_limit_of_the_one_before() -> None:
    cured: list[str] = []
    watch = Watch()
    for _ in range(6):
        watch.expect_within(0.03, lambda: cured.append("short"))
        await asyncio.sleep(0.01)
    watch.expect_within(10.0, lambda: cured.append("long"))
    await asyncio.sleep(0.05)
    assert cured == []
    watch.expect_within(0.001, lambda: cured.append("shorter"))
    await asyncio.sleep(0.02)
    assert cured == ["shorter"]
    watch.stop()


@on_both_loops
async def test_a_stopped_watch_does_nothing() -> None:
    cured: list[str] = []
    watch = Watch()
    watch.expect_within(0.001, lambda: cured.append("late"))
    watch.stop()
    watch.stop()
    await asyncio.sleep(0.01)
    assert cured == []
    assert not watch.expired


@on_both_loops
async def test_a_limit_that_has_passed_when_it_is_set_can_be_followed_by_another_step() -> None:
    cured: list[str] = []
    watch = Watch()
    now = asyncio.get_running_loop().time()
    for deadline in (now - 1.0, now, now + 10.0):
        watch.expect_by(deadline, lambda: cured.append("passed"))
    watch.expect_within(10.0, lambda: cured.append("later"))
    await asyncio.sleep(0.01)
    assert cured == []
    watch.expect_by(now - 1.0, lambda: cured.append("passed at last"))
    await asyncio.sleep(0.01)
    assert cured == ["passed at last"]
    watch.stop()
