"""The governor as a walk through a table: what is heard in, factors out; expected values by hand."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.admission.policy import ModelLimits, ReplicaBudget, ReplicaSpec
from llmshed.admission.signals.governor import (
    EXPIRY_SECONDS,
    FLOOR_RATIO,
    SHRINK_SECONDS,
    STEP_RATIO,
    STEP_SECONDS,
    BudgetGovernor,
)
from llmshed.admission.signals.readings import LedgerView, ReplicaReading, Signal

IDLE = LedgerView(waiting_sequences=0, active_ratio=0.1)
BUSY = LedgerView(waiting_sequences=20, active_ratio=0.9)
WHOLE_AGAIN_SECONDS = EXPIRY_SECONDS + STEP_SECONDS * math.ceil((1 - FLOOR_RATIO) / STEP_RATIO)


def spec(gross: int = 96_000, max_total_tokens: int = 8_192) -> ReplicaSpec:
    return ReplicaSpec("r1", "main", ReplicaBudget(gross, 0.1, 64), ModelLimits(4_096, max_total_tokens))


def full(at: float) -> ReplicaReading:
    return ReplicaReading(at, queued_requests=0.0, kv_used_ratio=1.0)


def well(at: float) -> ReplicaReading:
    return ReplicaReading(at, queued_requests=0.0, kv_used_ratio=0.3, preemptions_total=0.0)


def hear(governor: BudgetGovernor, read: Callable[[float], ReplicaReading], *times: float) -> list[float]:
    """Read at these times and return the factor after each."""
    factors = []
    for now in times:
        governor.hear(read(now), IDLE, now)
        factors.append(governor.factor)
    return factors


def test_a_healthy_replica_lends_its_own_budget() -> None:
    governor, mine = BudgetGovernor(), spec()
    hear(governor, well, 5.0, 10.0)
    assert governor.budget(mine, 11.0) is mine.budget
    assert not governor.causes
    assert (governor.next_change(), governor.heard_at) == (None, 10.0)


def test_down_by_a_factor_every_ten_seconds_to_a_quarter_and_up_in_steps() -> None:
    governor = BudgetGovernor()
    # KV counts from the second reading in a row; the ones between two shrinks hold the cause.
    down = hear(governor, full, *(5.0 * n for n in range(1, 10)))
    assert down == [1.0, 0.7, 0.7, 0.49, 0.49, 0.343, 0.343, 0.25, 0.25]
    assert governor.causes == (Signal.KV,)
    up = hear(governor, well, *(45.0 + 5.0 * n for n in range(1, 8)))  # 50 acquits, 60, 70 and 80 are steps
    assert up == [0.25, 0.25, 0.3, 0.3, 0.35, 0.35, 0.4]
    assert governor.next_change() == 90.0
    assert not governor.causes


def test_what_was_heard_holds_for_a_minute_and_then_gives_way_in_steps() -> None:
    governor, mine = BudgetGovernor(), spec()
    hear(governor, full, 5.0, 10.0)
    assert governor.next_change() == 80.0  # 10 + 60 + 10
    walk = {}
    for now in (69.9, 79.9, 80.0, 90.0, 129.9, 130.0):
        governor.budget(mine, now)
        walk[now] = governor.factor
    assert walk == {69.9: 0.7, 79.9: 0.7, 80.0: 0.75, 90.0: 0.8, 129.9: 0.95, 130.0: 1.0}
    assert governor.budget(mine, 131.0) is mine.budget


def test_the_shrunk_budget_is_that_share_of_the_safe_budget() -> None:
    governor = BudgetGovernor()
    hear(governor, full, 5.0, 10.0)
    shrunk = governor.budget(spec(), 10.0)
    # 0.7 x 86,400 = 60,480, which is 67,200 less a tenth
    assert (shrunk.gross_ceiling_tokens, shrunk.safe_budget_tokens) == (67_200, 60_480)
    assert shrunk.hard_cap_sequences == 64


def test_one_request_of_the_largest_size_always_fits() -> None:
    governor = BudgetGovernor()
    hear(governor, full, *(5.0 * n for n in range(1, 20)))
    assert governor.budget(spec(gross=96_000, max_total_tokens=32_768), 95.0).safe_budget_tokens == 32_768
    tight = spec(gross=10_000, max_total_tokens=9_000)  # a safe budget of 9,000: nothing can be taken from it
    assert governor.budget(tight, 95.0) is tight.budget


def test_a_full_cache_is_no_signal_while_the_ledger_is_full_too() -> None:
    governor = BudgetGovernor()
    for n in range(1, 20):
        assert governor.hear(full(5.0 * n), BUSY, 5.0 * n) == ()
    assert governor.factor == 1.0


@pytest.mark.parametrize(("queued", "bad"), [(0, False), (23, False), (24, True), (500, True)])
def test_a_queue_counts_from_four_beyond_what_waits_by_the_ledger_for_three_readings(queued: int, *, bad: bool) -> None:
    governor = BudgetGovernor()
    told = [governor.hear(ReplicaReading(n, queued_requests=queued), BUSY, n) for n in (5.0, 10.0, 15.0)]
    assert told == [(), (), (Signal.QUEUE,) if bad else ()]


def test_a_queue_that_empties_between_is_no_signal() -> None:
    governor = BudgetGovernor()
    for n, queued in enumerate((9, 9, 0, 9, 9, None, 9, 9), 1):
        assert governor.hear(ReplicaReading(5.0 * n, queued_requests=queued), IDLE, 5.0 * n) == ()


def test_preemptions_are_held_against_their_budget_of_a_minute_while_they_go_on() -> None:
    governor = BudgetGovernor(preemptions_per_minute=6.0)
    told = {}
    totals = {0: 100, 20: 104, 40: 106, 55: 107, 65: 107, 70: 111, 100: 112, 105: 3, 110: 8}
    for now, total in totals.items():
        told[now] = governor.hear(ReplicaReading(float(now), preemptions_total=total), IDLE, float(now))
    # 55: 7 in a minute. 65: none are new. 70: 7 since 20 s. 100: 6 since 40 s. 105: the engine started anew.
    assert [now for now, signals in told.items() if signals] == [55, 70]


def test_preemptions_without_a_budget_are_no_signal() -> None:
    governor = BudgetGovernor()
    for n in range(10):
        assert governor.hear(ReplicaReading(5.0 * n, preemptions_total=100.0 * n), IDLE, 5.0 * n) == ()


def test_a_stall_shrinks_for_as_long_as_it_lasts_and_a_good_reading_does_not_end_it() -> None:
    governor = BudgetGovernor()
    factors = []
    for now in (15.0, 16.0, 25.0, 35.0):
        governor.stalled(now)
        factors.append(governor.factor)
    assert factors == [0.7, 0.7, 0.49, 0.343]
    assert hear(governor, well, 40.0, 50.0, 60.0) == [0.343] * 3
    governor.recovered(61.0)
    governor.recovered(62.0)
    assert governor.next_change() == 71.0
    assert hear(governor, well, 70.9, 71.0) == [0.343, 0.393]


@pytest.mark.parametrize(
    "reading",
    [
        ReplicaReading(10.0, kv_used_ratio=1.0),  # read before the last one was
        ReplicaReading(9.0, kv_used_ratio=1.0),
        ReplicaReading(16.0, kv_used_ratio=1.0),  # from the future
        ReplicaReading(15.0, kv_used_ratio=math.nan),
        ReplicaReading(15.0, kv_used_ratio=-1.0),
        ReplicaReading(15.0, kv_used_ratio=100.0),
        ReplicaReading(15.0, queued_requests=math.inf),
    ],
)
def test_what_cannot_be_true_changes_nothing(reading: ReplicaReading) -> None:
    governor = BudgetGovernor()
    hear(governor, full, 5.0, 10.0)
    due = governor.next_change()
    assert governor.hear(reading, IDLE, 15.0) == (Signal.ABSURD,)
    assert (governor.factor, governor.next_change(), governor.heard_at) == (0.7, due, 10.0)


VALUES = st.none() | st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 30)
TOLD = st.tuples(st.floats(0.0, 30.0), st.sampled_from(["hear", "stalled", "recovered"]), VALUES, VALUES, VALUES)


@pytest.mark.slow
@given(st.lists(TOLD, max_size=60))
def test_never_above_the_whole_never_below_the_floor_and_whole_again_after_silence(
    told: list[tuple[float, str, float | None, float | None, float | None]],
) -> None:
    governor, mine, now = BudgetGovernor(preemptions_per_minute=6.0), spec(), 0.0
    last_shrink = -math.inf
    for pause, what, queued, kv, preemptions in told:
        now += pause
        before = governor.budget(mine, now).safe_budget_tokens
        if what == "hear":
            governor.hear(ReplicaReading(now, queued, kv, preemptions), IDLE, now)
        else:
            getattr(governor, what)(now)
        assert governor.check() == ()
        lent = governor.budget(mine, now).safe_budget_tokens
        assert FLOOR_RATIO * 86_400 <= lent <= 86_400
        assert lent <= before
        if lent < before:
            assert now - last_shrink >= SHRINK_SECONDS
            last_shrink = now
    assert governor.budget(mine, now + WHOLE_AGAIN_SECONDS) is mine.budget
    assert not governor.causes


@pytest.mark.slow
@given(st.integers(1, 200))
def test_the_announced_wake_ups_alone_lead_back_to_the_whole(readings: int) -> None:
    governor, mine = BudgetGovernor(), spec()
    hear(governor, full, *(5.0 * n for n in range(1, readings + 1)))
    now, wakes = 5.0 * readings, 0
    while (due := governor.next_change()) is not None:
        assert due > now
        now, wakes = due, wakes + 1
        before = governor.factor
        governor.budget(mine, now)
        assert governor.factor > before
    assert wakes <= 15
    assert now - 5.0 * readings <= WHOLE_AGAIN_SECONDS


def test_preemptions_are_told_by_their_budget() -> None:
    """Of 6 a minute: 3 in half a minute, then 9 in a minute, of which the oldest reading tells none."""
    governor = BudgetGovernor(preemptions_per_minute=6.0)
    told = []
    for at, total in ((0.0, 10.0), (30.0, 13.0), (60.0, 19.0), (91.0, 19.0), (100.0, 2.0)):
        governor.hear(ReplicaReading(at, preemptions_total=total), IDLE, at)
        told.append(governor.preemptions_over_budget)
    assert told == [0.0, 0.5, 1.5, 0.0, 0.0]
    assert BudgetGovernor().preemptions_over_budget is None
    none_permitted = BudgetGovernor(preemptions_per_minute=0.0)
    assert none_permitted.preemptions_over_budget is None
    for at, total in ((0.0, 0.0), (5.0, 1.0)):
        none_permitted.hear(ReplicaReading(at, preemptions_total=total), IDLE, at)
    assert none_permitted.preemptions_over_budget == math.inf
