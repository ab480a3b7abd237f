"""The machine of one pool: other signals, room, windows that nobody ended, and how soon a rung can be left."""

import math

import pytest

from fakes.ladders import reading, shipped, small, window
from llmshed.ladder.machine import PoolLadder
from llmshed.ladder.model import Ladder
from llmshed.ladder.reading import PoolReading
from llmshed.ladder.standing import Cause, Hold, Step, WindowSummary

SOURCE = shipped("source")
QUICK = small(
    """\
action = "stop_bulk"; entry = { windows = 1 }; exit = { windows = 2 }
action = "cap_output"; max_output_tokens = 100; entry = { windows = 1 }; exit = { windows = 2 }
""",
    windows="sample_minimum = 1\nmost_exit_windows = 3",
)
AT_REST = reading()
HIGH, LOW = [9.0], [0.0]  # with an objective of 8 s


def told(steps: list[Step]) -> list[tuple[int, int, Cause]]:
    return [(step.before, step.after, step.cause) for step in steps]


class Minutes:
    """A pool, and minutes that pass."""

    def __init__(self, ladder: Ladder, objective_seconds: float = 8.0) -> None:
        self.pool = PoolLadder("chat", ladder, objective_seconds, 0.0)
        self.now = 0.0

    def pass_by(
        self, *waits: float, offered: int = 0, let_in: int = 0, seen: PoolReading = AT_REST
    ) -> list[tuple[int, int, Cause]]:
        self.now += 60
        self.pool.offered(offered)
        self.pool.let_in(let_in)
        return told(window(self.pool, self.now, waits, seen))

    @property
    def last(self) -> WindowSummary:
        summary = self.pool.standing().window
        assert summary is not None
        return summary


def test_the_window_is_read_when_it_ends_and_not_before() -> None:
    pool = PoolLadder("chat", SOURCE, 8.0, 100.0)

    assert pool.next_wakeup() == 160.0
    assert pool.advance(159.9, lambda: pytest.fail("read too early")) == []
    assert pool.advance(160.0, reading) == []
    assert pool.next_wakeup() == 220.0


def test_the_standing_tells_the_last_window_and_the_rows() -> None:
    minutes = Minutes(QUICK)
    assert minutes.pool.standing().window is None
    minutes.pass_by(*HIGH, offered=1200, let_in=600)

    standing = minutes.pool.standing()
    assert (standing.ladder, standing.by_rule, standing.rung, standing.exit_windows) == ("small@1", 1, 1, 2)
    assert [rung.name for rung in standing.in_force] == ["r1"]
    assert (minutes.last.ended_at, minutes.last.arrivals, minutes.last.above) == (60.0, 1, True)
    assert minutes.last.signal_seconds == pytest.approx(9.0, rel=0.01)
    assert (minutes.last.offered_tokens_per_second, minutes.last.service_tokens_per_second) == (20.0, 10.0)

    minutes.pass_by(*LOW)
    assert (minutes.pool.standing().above_windows, minutes.pool.standing().calm_windows) == (0, 1)


def test_the_objective_of_the_ladder_goes_before_that_of_the_pool() -> None:
    ladder = small('action = "stop_bulk"; entry = { windows = 1 }', "sample_minimum = 1\nobjective_seconds = 2")
    assert Minutes(ladder).pass_by(2.5) == [(0, 1, Cause.CLIMBED)]


def test_a_process_that_stood_still_ends_one_window() -> None:
    minutes = Minutes(SOURCE)
    for _ in range(2):
        assert minutes.pass_by(*[9.0] * 20) == []
    pool = minutes.pool
    pool.sample(9.0)

    # Ten windows later the third one ends, with too few arrivals to be above; those in between were seen by nobody.
    assert window(pool, 720.0, [9.0] * 18) == []
    assert minutes.last.arrivals == 19
    assert pool.standing().above_windows == 0
    assert pool.next_wakeup() == 780.0  # a whole window begins: a rest of one would be calm for want of arrivals


def test_rates_are_of_the_time_that_a_window_really_took() -> None:
    minutes = Minutes(QUICK)
    minutes.pool.offered(1200)
    window(minutes.pool, 120.0, HIGH)
    assert minutes.last.offered_tokens_per_second == 10.0


class TestOtherSignals:
    KV = small(
        """\
action = "stop_bulk"; entry = { windows = 1 }; exit = { windows = 1 }
action = "cap_output"; max_output_tokens = 9; entry = { signal = "kv_used_ratio", above = 0.8, windows = 2 }; \
exit = { below_ratio = 0.75, windows = 2 }
""",
        windows="sample_minimum = 1",
    )

    def test_a_rung_is_entered_and_left_by_its_own_signal(self) -> None:
        minutes = Minutes(self.KV)
        assert minutes.pass_by(*HIGH, seen=reading(kv_used=0.99)) == [(0, 1, Cause.CLIMBED)]
        assert minutes.pass_by(*HIGH, seen=reading(kv_used=0.81)) == []
        assert minutes.pass_by(*LOW, seen=reading(kv_used=0.81)) == [(1, 2, Cause.CLIMBED)]
        assert minutes.pass_by(*LOW, seen=reading(kv_used=0.7)) == []  # 0.75 x 0.8 = 0.6 is to be fallen below
        assert minutes.pass_by(*HIGH, seen=reading(kv_used=0.59)) == []
        assert minutes.pass_by(*HIGH, seen=reading(kv_used=0.59)) == [(2, 1, Cause.DESCENDED)]

    def test_above_goes_before_calm(self) -> None:
        minutes = Minutes(self.KV)
        minutes.pass_by(*HIGH)
        assert minutes.pass_by(*LOW, seen=reading(kv_used=0.9)) == []  # both the exit of 1 and the entry of 2 are met
        assert minutes.pool.standing().above_windows == 1
        assert (minutes.last.above, minutes.last.calm) == (True, False)

    def test_what_is_not_told_is_above_nothing_and_left_by_the_queue_delay(self) -> None:
        minutes = Minutes(self.KV)
        minutes.pass_by(*HIGH)
        assert minutes.pass_by(7.0) == []
        minutes.pass_by(*HIGH, seen=reading(kv_used=0.9))
        minutes.pass_by(*HIGH, seen=reading(kv_used=0.9))
        assert minutes.pool.standing().by_rule == 2
        assert minutes.pass_by(7.0) == []  # 0.75 x the objective of 8 s is to be fallen below
        assert minutes.pool.standing().calm_windows == 0
        assert minutes.pass_by(5.0) == []
        assert minutes.pass_by(5.0) == [(2, 1, Cause.DESCENDED)]

    @pytest.mark.parametrize(
        ("signal", "above", "at", "beyond"),
        [
            ("queued_prefill_tokens", 1000, reading(prefill_tokens=1000), reading(prefill_tokens=1001)),
            ("preemptions_over_budget", 1, reading(preemptions=1.0), reading(preemptions=1.01)),
            ("replicas_lost", 0.5, AT_REST, reading(lost=1)),
        ],
    )
    def test_each_is_entered_above_its_bound_and_left_below(
        self, signal: str, above: float, at: PoolReading, beyond: PoolReading
    ) -> None:
        entry = f'entry = {{ signal = "{signal}", above = {above}, windows = 1 }}; exit = {{ windows = 1 }}'
        minutes = Minutes(small(f'action = "stop_bulk"; {entry}'))
        assert minutes.pass_by(seen=at) == []
        assert minutes.pass_by(seen=beyond) == [(0, 1, Cause.CLIMBED)]
        assert minutes.pass_by(seen=reading(preemptions=0.0)) == [(1, 0, Cause.DESCENDED)]

    def test_the_oldest_age_needs_no_sample_minimum(self) -> None:
        entry = 'entry = { signal = "oldest_queue_age_seconds", above = 5, windows = 1 }'
        pool = PoolLadder("chat", small(f'action = "stop_bulk"; {entry}'), 8.0, 0.0)
        assert told(window(pool, 60.0, (), reading(5.5))) == [(0, 1, Cause.CLIMBED)]

    def test_a_queue_delay_bound_of_its_own_is_that_of_entry_and_exit(self) -> None:
        entry = "entry = { above = 4, windows = 1 }; exit = { below_ratio = 0.5, windows = 1 }"
        minutes = Minutes(small(f'action = "stop_bulk"; {entry}', "sample_minimum = 1"))
        assert minutes.pass_by(4.0) == []
        assert minutes.pass_by(4.1) == [(0, 1, Cause.CLIMBED)]
        assert minutes.pass_by(2.0) == []
        assert minutes.pass_by(1.9) == [(1, 0, Cause.DESCENDED)]


class TestRoom:
    def test_a_step_back_waits_for_what_is_offered_to_fit_what_is_served(self) -> None:
        minutes = Minutes(QUICK)
        minutes.pass_by(*HIGH, offered=1200, let_in=600)  # 10 tokens a second are served at most
        assert minutes.pass_by(*LOW, offered=601, let_in=300) == []
        assert minutes.pass_by(*LOW, offered=601, let_in=300) == []
        assert minutes.pool.standing().calm_windows == 2
        assert minutes.pass_by(*LOW, offered=600, let_in=300) == [(1, 0, Cause.DESCENDED)]

    def test_a_ladder_can_do_without(self) -> None:
        windows = "sample_minimum = 1\ndescend_needs_room = false"
        minutes = Minutes(small('action = "stop_bulk"; entry = { windows = 1 }; exit = { windows = 1 }', windows))
        minutes.pass_by(*HIGH, offered=1200, let_in=600)
        assert minutes.pass_by(*LOW, offered=1200) == [(1, 0, Cause.DESCENDED)]

    def test_never_seen_under_pressure_there_is_room(self) -> None:
        entry = 'entry = { signal = "replicas_lost", above = 0.5, windows = 1 }; exit = { windows = 1 }'
        minutes = Minutes(small(f'action = "stop_bulk"; {entry}', "sample_minimum = 1"))
        minutes.pass_by(*LOW, offered=1200, let_in=600, seen=reading(lost=1))
        assert minutes.pass_by(*LOW, offered=10**9) == [(1, 0, Cause.DESCENDED)]

    def test_no_ceiling_that_was_lowered_makes_the_pool_look_small(self) -> None:
        minutes = Minutes(QUICK)
        minutes.pass_by(*HIGH, offered=1200, let_in=600)
        minutes.pass_by(*HIGH, offered=1200, let_in=600)  # climbs to the cap
        minutes.pass_by(*HIGH, offered=1200, let_in=60)
        assert minutes.last.service_tokens_per_second == 10

    def test_after_twice_the_longest_way_back_what_was_seen_is_of_another_time(self) -> None:
        minutes = Minutes(QUICK)  # most_exit_windows = 3
        minutes.pass_by(*HIGH, offered=1200, let_in=600)
        for _ in range(5):
            assert minutes.pass_by(*LOW, offered=1200, let_in=1200) == []
        assert minutes.pass_by(*LOW, offered=1200, let_in=1200) == [(1, 0, Cause.DESCENDED)]
        minutes.pass_by(*LOW, offered=1200, let_in=1200)
        assert minutes.last.service_tokens_per_second is None


class TestTheWayBack:
    @pytest.mark.parametrize("number", [1, 2])
    def test_it_is_as_short_as_calm_windows_from_now_on_make_it(self, number: int) -> None:
        minutes = Minutes(SOURCE)
        for _ in range(5):
            minutes.pass_by(*[9.0] * 20)
        minutes.pass_by()
        minutes.pass_by()  # two calm ones of five have passed
        told_seconds = minutes.pool.back_in_seconds(number, minutes.now + 30)

        while len(minutes.pool.in_force) >= number:
            minutes.pass_by()
        assert told_seconds == minutes.now - (420 + 30)

    def test_what_is_held_is_in_force_until_its_time(self) -> None:
        pool = PoolLadder("chat", SOURCE, 8.0, 0.0)
        pool.hold(Hold("shed-lowest", 500.0, "a test"), 0.0)
        assert (pool.back_in_seconds(1, 100.0), pool.back_in_seconds(2, 100.0)) == (400.0, 400.0)

    def test_a_row_that_waits_for_room_can_end_with_the_window(self) -> None:
        minutes = Minutes(QUICK)
        minutes.pass_by(*HIGH, offered=1200, let_in=600)
        for _ in range(3):
            minutes.pass_by(*LOW, offered=1200)
        assert minutes.pool.back_in_seconds(1, minutes.now) == 60.0


def test_an_estimate_without_an_end_is_above_every_bound() -> None:
    minutes = Minutes(QUICK)
    assert minutes.pass_by(math.inf) == [(0, 1, Cause.CLIMBED)]
    assert minutes.last.signal_seconds == math.inf
