"""What a person holds, over what the rule says, through reloads."""

import pytest

from fakes.ladders import reading, shipped, small, window
from llmshed.ladder.machine import PoolLadder
from llmshed.ladder.standing import Cause, Hold, Step

SOURCE = shipped("source")
OVER = [9.0] * 20


def on_rung(by_rule: int) -> tuple[PoolLadder, float]:
    """Return a pool on a rung of the ladder that follows the plain rule, and the time."""
    pool, now = PoolLadder("chat", SOURCE, 8.0, 0.0), 0.0
    for _ in range((0, 3, 5)[by_rule]):
        now += 60
        window(pool, now, OVER)
    assert pool.standing().by_rule == by_rule
    return pool, now


def held(rung: str, until: float) -> Hold:
    return Hold(rung, until, "drill")


def told(step: Step | None) -> tuple[int, int, Cause] | None:
    return None if step is None else (step.before, step.after, step.cause)


class TestHolding:
    def test_the_higher_of_both_is_in_force(self) -> None:
        pool, now = on_rung(1)
        assert told(pool.hold(held("shed-lowest", now + 600), now)) == (1, 2, Cause.HELD)
        assert [rung.name for rung in pool.in_force] == ["stop-bulk", "shed-lowest"]
        assert pool.standing().by_rule == 1

    def test_holding_no_more_than_the_rule_changes_nothing_now(self) -> None:
        pool, now = on_rung(2)
        assert pool.hold(held("stop-bulk", now + 600), now) is None
        assert pool.standing().hold == held("stop-bulk", now + 600)
        assert len(pool.in_force) == 2

    def test_it_outlives_the_way_back_and_ends_where_the_rule_stands(self) -> None:
        pool, now = on_rung(1)
        pool.hold(held("shed-lowest", 1000.0), now)
        steps = [told(step) for minute in range(4, 17) for step in window(pool, 60.0 * minute)]
        assert steps == [(2, 2, Cause.DESCENDED)]  # five calm windows were enough
        assert pool.standing().by_rule == 0
        assert len(pool.in_force) == 2
        assert pool.next_wakeup() == 1000.0
        assert [told(step) for step in window(pool, 1000.0)] == [(2, 0, Cause.EXPIRED)]

    def test_what_the_rule_does_below_a_hold_is_told_and_changes_nothing(self) -> None:
        pool, now = on_rung(0)
        pool.hold(held("stop-bulk", 250.0), now)
        steps = [told(step) for minute in (1, 2, 3) for step in window(pool, 60.0 * minute, OVER)]
        assert steps == [(1, 1, Cause.CLIMBED)]
        assert window(pool, 250.0 - 1e-9) == []
        assert [told(step) for step in pool.advance(250.0, reading)] == [(1, 1, Cause.EXPIRED)]
        assert (pool.standing().hold, pool.standing().by_rule) == (None, 1)

    def test_another_hold_replaces_it(self) -> None:
        pool, now = on_rung(0)
        pool.hold(held("shed-lowest", 600.0), now)
        assert told(pool.hold(held("stop-bulk", 500.0), now)) == (2, 1, Cause.HELD)
        assert pool.next_wakeup() == 60.0

    def test_releasing_gives_it_up_at_once(self) -> None:
        pool, now = on_rung(1)
        pool.hold(held("shed-lowest", 600.0), now)
        assert told(pool.release()) == (2, 1, Cause.RELEASED)
        assert pool.release() is None

    def test_a_hold_whose_time_is_over_holds_nothing(self) -> None:
        pool, now = on_rung(1)
        assert pool.hold(held("shed-lowest", now), now) is None
        assert pool.standing().hold is None

    def test_no_rung_of_another_name_can_be_held(self) -> None:
        pool, now = on_rung(0)
        with pytest.raises(ValueError, match="ladder source@1 has no rung `shed`"):
            pool.hold(held("shed", 600.0), now)
        assert pool.standing().hold is None

    def test_its_end_and_that_of_a_window_come_in_their_order(self) -> None:
        pool, now = on_rung(0)
        for minute in (1, 2):
            window(pool, 60.0 * minute, OVER)
        pool.hold(held("shed-lowest", 180.0), now)
        assert [told(step) for step in window(pool, 180.0, OVER)] == [(2, 0, Cause.EXPIRED), (0, 1, Cause.CLIMBED)]
        assert pool.next_wakeup() == 240.0

    def test_a_hold_that_ended_while_the_process_stood_still_is_over(self) -> None:
        pool, now = on_rung(0)
        pool.hold(held("shed-lowest", 70.0), now)
        assert [told(step) for step in window(pool, 10_000.0)] == [(2, 0, Cause.EXPIRED)]


class TestReloading:
    # The same two rungs behind a new first one.
    LONGER = small(
        """\
name = "notes"; action = "drop_enrichment"; largest_quality_gap = 0.1
name = "stop-bulk"; action = "stop_bulk"; entry = { windows = 3 }
name = "shed-lowest"; action = "shed_interactive"; scope = { classes = ["low"] }
""",
    )
    OTHER = small('name = "stop-bulk"; action = "stop_bulk"; entry = { windows = 3 }')
    FOREIGN = small('action = "stop_bulk"')

    def test_the_same_ladder_changes_nothing(self) -> None:
        pool, now = on_rung(1)
        window(pool, now + 60, OVER)
        before = pool.standing()
        assert pool.renew(SOURCE.model_copy(), 8.0, now + 90) is None
        assert pool.standing() == before
        assert pool.next_wakeup() == now + 120

    def test_rungs_are_kept_by_their_names(self) -> None:
        pool, now = on_rung(1)
        pool.hold(held("shed-lowest", now + 600), now)
        assert told(pool.renew(self.LONGER, 8.0, now)) == (2, 3, Cause.RELOADED)
        assert (pool.standing().by_rule, pool.standing().ladder) == (2, "small@1")
        assert pool.standing().hold == held("shed-lowest", now + 600)

    def test_of_rungs_that_are_gone_the_highest_below_is_kept(self) -> None:
        pool, now = on_rung(2)
        assert told(pool.renew(self.OTHER, 8.0, now)) == (2, 1, Cause.RELOADED)

    def test_other_rungs_begin_on_the_ground(self) -> None:
        pool, now = on_rung(2)
        assert told(pool.renew(self.FOREIGN, 8.0, now)) == (2, 0, Cause.RELOADED)

    def test_a_held_rung_that_is_gone_is_no_longer_held(self) -> None:
        pool, now = on_rung(0)
        pool.hold(held("shed-lowest", now + 600), now)
        assert told(pool.renew(self.OTHER, 8.0, now)) == (2, 0, Cause.RELOADED)
        assert pool.standing().hold is None

    def test_other_names_are_a_step_even_where_their_number_is_the_same(self) -> None:
        pool, now = on_rung(2)
        other = small(
            """\
name = "stop-all-bulk"; action = "stop_bulk"
name = "shed-lowest"; action = "shed_interactive"; scope = { classes = ["low"] }
"""
        )
        assert told(pool.renew(other, 8.0, now)) == (2, 2, Cause.RELOADED)

    def test_another_objective_counts_anew_and_keeps_the_rung(self) -> None:
        pool, now = on_rung(1)
        window(pool, now + 60, OVER)
        assert pool.standing().above_windows == 1
        assert pool.renew(SOURCE, 12.0, now + 90) is None
        assert (pool.standing().by_rule, pool.standing().above_windows) == (1, 0)
        assert pool.next_wakeup() == now + 150
        assert window(pool, now + 150, [11.0] * 20) == []
        assert pool.standing().above_windows == 0

    def test_early_reentries_under_the_old_ladder_are_forgotten(self) -> None:
        pool, _ = on_rung(1)
        for minute in range(4, 9):
            window(pool, 60.0 * minute)
        assert pool.standing().by_rule == 0
        for minute in range(9, 12):
            window(pool, 60.0 * minute, OVER)
        assert pool.standing().exit_windows == 10
        pool.renew(SOURCE, 12.0, 660.0)
        assert pool.standing().exit_windows == 5
