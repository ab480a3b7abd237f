"""The plain rule, minute by minute: three above stop bulk, two more shed the lowest class, five below 70 % go one back.

"When interactive queue age at the 95th percentile exceeds its service objective for three consecutive one-minute
windows, stop admitting bulk work to shared replicas. If it remains high for two more windows, shed the lowest-priority
interactive arrivals until recovery. Restore bulk admission only after the same metric stays below 70 percent of the
objective for five windows."
"""

from itertools import pairwise

import pytest

from fakes.ladders import reading, shipped, window
from llmshed.ladder.machine import PoolLadder
from llmshed.ladder.standing import Cause

OBJECTIVE_SECONDS = 8.0
NOTHING, STOPS, SHEDS = (), ("stop-bulk",), ("stop-bulk", "shed-lowest")

# The 95th percentile of the minute, and what is in force at its end. 70 % of 8 s is 5.6 s.
ONE_OVERLOAD = [
    (0.0, NOTHING),
    (7.9, NOTHING),  # high, but within the objective
    (8.1, NOTHING),
    (9.0, NOTHING),
    (8.0, NOTHING),  # the objective itself is kept: the row is broken after two
    (9.0, NOTHING),
    (12.0, NOTHING),
    (8.1, STOPS),  # the third in a row
    (20.0, STOPS),
    (7.0, STOPS),  # neither above nor below 70 %: the row is broken after one
    (20.0, STOPS),
    (20.0, SHEDS),  # two more in a row
    (20.0, SHEDS),  # there is no further rung
    (20.0, SHEDS),
    (6.0, SHEDS),
    (5.5, SHEDS),
    (5.5, SHEDS),
    (5.5, SHEDS),
    (5.5, SHEDS),
    (5.6, SHEDS),  # 70 % itself is not below it: the row is broken after four
    (5.5, SHEDS),
    (4.0, SHEDS),
    (3.0, SHEDS),
    (2.0, SHEDS),
    (1.0, STOPS),  # the fifth in a row ends the shedding
    (1.0, STOPS),
    (1.0, STOPS),
    (1.0, STOPS),
    (1.0, STOPS),
    (1.0, NOTHING),  # five more restore bulk
    (1.0, NOTHING),
]

# Back up within ten windows after a step back: each such return doubles the windows of the way back, up to 40.
RETURNS = [
    *[(9.0, NOTHING)] * 2, (9.0, STOPS),
    *[(1.0, STOPS)] * 4, (1.0, NOTHING),
    *[(9.0, NOTHING)] * 2, (9.0, STOPS),  # back after 3 windows
    *[(1.0, STOPS)] * 9, (1.0, NOTHING),  # so it takes 10
    *[(1.0, NOTHING)] * 7, *[(9.0, NOTHING)] * 2, (9.0, STOPS),  # back after 10 windows
    *[(1.0, STOPS)] * 19, (1.0, NOTHING),  # so it takes 20
    *[(1.0, NOTHING)] * 8, *[(9.0, NOTHING)] * 2, (9.0, STOPS),  # after 11, which is not early
    *[(1.0, STOPS)] * 4, (1.0, NOTHING),  # and on the ground for as long it was forgotten
]  # fmt: skip


@pytest.mark.parametrize("minutes", [ONE_OVERLOAD, RETURNS], ids=["one overload", "returns"])
def test_each_minute_ends_in_its_state(minutes: list[tuple[float, tuple[str, ...]]]) -> None:
    pool = PoolLadder("chat", shipped("source"), OBJECTIVE_SECONDS, 0.0)
    steps = []
    for minute, (percentile, expected) in enumerate(minutes, 1):
        # 38 of 40 at the percentile, so that the two slowest do not decide, and it is one in twenty that is slower.
        steps += window(pool, 60.0 * minute, [percentile] * 38 + [60.0] * 2)
        assert tuple(rung.name for rung in pool.in_force) == expected, f"minute {minute}"

    rungs = [0, *(len(expected) for _, expected in minutes)]
    changes = [(before, after) for before, after in pairwise(rungs) if before != after]
    assert [(step.before, step.after) for step in steps] == changes
    assert all(step.cause is (Cause.CLIMBED if step.after > step.before else Cause.DESCENDED) for step in steps)


def test_early_refusal_does_not_hide_the_overload() -> None:
    """Whoever is served waited for a second, since all others were told at once that they would wait for 30."""
    pool = PoolLadder("chat", shipped("source"), OBJECTIVE_SECONDS, 0.0)
    in_force = []
    for minute in range(1, 6):
        window(pool, 60.0 * minute, [1.0] * 50 + [30.0] * 50)
        in_force.append(len(pool.in_force))
    assert in_force == [0, 0, 1, 1, 2]


def test_those_who_wait_are_seen_before_they_leave() -> None:
    """Nobody left the queue in these minutes; who waits in it grows older."""
    pool = PoolLadder("chat", shipped("source"), OBJECTIVE_SECONDS, 0.0)
    in_force = []
    for minute in range(1, 5):
        window(pool, 60.0 * minute, (), reading(*[4.0 * minute] * 25))
        in_force.append(len(pool.in_force))
    assert in_force == [0, 0, 0, 0]  # 4, 8, 12, 16 s: two windows above
    window(pool, 300.0, (), reading(*[20.0] * 25))
    assert len(pool.in_force) == 1


def test_a_quiet_night_is_calm_but_for_one_who_waits_too_long() -> None:
    pool = PoolLadder("chat", shipped("source"), OBJECTIVE_SECONDS, 0.0)
    for minute in range(1, 4):
        window(pool, 60.0 * minute, [9.0] * 20)
    for minute in range(4, 8):
        window(pool, 60.0 * minute, [30.0] * 19)  # too few to say anything, and none of them waits
    assert len(pool.in_force) == 1
    window(pool, 480.0, (), reading(8.5))  # one, for longer than the objective: the row is broken after four
    for minute in range(9, 13):
        window(pool, 60.0 * minute)
    assert len(pool.in_force) == 1
    window(pool, 780.0)
    assert len(pool.in_force) == 0
