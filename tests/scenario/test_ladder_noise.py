"""A signal that swings about its objective by 5 % moves nothing back, and nothing up but by the stated rule."""

import random

import pytest

from fakes.ladders import shipped, window
from llmshed.ladder.machine import PoolLadder

OBJECTIVE_SECONDS, WINDOWS, SEEDS = 8.0, 60, 200
SOURCE = shipped("source")


def begun(rung: int) -> tuple[PoolLadder, int]:
    """Return a pool that was driven up to a rung, and the minutes that took."""
    pool, minutes = PoolLadder("chat", SOURCE, OBJECTIVE_SECONDS, 0.0), (0, 3, 5)[rung]
    for minute in range(1, minutes + 1):
        window(pool, 60.0 * minute, [9.0] * 20)
    assert len(pool.in_force) == rung
    return pool, minutes


@pytest.mark.parametrize("rung", [0, 1, 2])
@pytest.mark.parametrize("first", [0.95, 1.05])
def test_alternating_about_the_objective_moves_nothing(rung: int, first: float) -> None:
    pool, minutes = begun(rung)
    for turn in range(1, WINDOWS + 1):
        swing = first if turn % 2 else 2 - first
        assert window(pool, 60.0 * (minutes + turn), [OBJECTIVE_SECONDS * swing] * 20) == []


def climbs_by_rule(percentiles: list[float], rung: int) -> list[int]:
    """Return the rung after each minute by the rule alone: so many in a row above, counted anew after each climb."""
    rungs, row = [], 0
    for percentile in percentiles:
        row = row + 1 if percentile > OBJECTIVE_SECONDS else 0
        if rung < 2 and row == (3, 2)[rung]:
            rung, row = rung + 1, 0
        rungs.append(rung)
    return rungs


@pytest.mark.slow
@pytest.mark.parametrize("begin", [0, 1, 2])
def test_at_random_it_climbs_by_the_stated_rule_and_never_descends(begin: int) -> None:
    seeds = range(begin, SEEDS, 3)
    highest = set()
    for seed in seeds:
        swings = random.Random(seed)  # noqa: S311 - noise that can be made again
        pool, minutes = begun(begin)
        percentiles = [OBJECTIVE_SECONDS * swings.uniform(0.95, 1.05) for _ in range(WINDOWS)]
        rungs = []
        for turn, percentile in enumerate(percentiles, 1):
            window(pool, 60.0 * (minutes + turn), [percentile] * 20)
            rungs.append(len(pool.in_force))
        assert rungs == climbs_by_rule(percentiles, begin)
        assert rungs == sorted(rungs)
        highest.add(rungs[-1])
    assert max(highest) == 2
