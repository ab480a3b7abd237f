"""The machine of a ladder against one that keeps all it saw and works everything out anew.

Bounds and waits are such that products are exact, so the two have to agree to the last window.
"""

import math

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fakes.ladders import reading, small
from fakes.plain_ladder import PlainLadder
from llmshed.ladder.machine import PoolLadder
from llmshed.ladder.model import Ladder
from llmshed.ladder.reading import PoolReading
from llmshed.ladder.standing import Hold, Step

WINDOW_SECONDS = 64.0
WINDOWS = f"""\
window_seconds = {WINDOW_SECONDS}
sample_minimum = 4
reentry_windows = 3
most_exit_windows = 5
objective_seconds = 8"""
EXIT = "exit = { below_ratio = 0.5, windows = 1 }"
LADDERS = (
    small(
        f"""\
name = "bulk"; action = "stop_bulk"; entry = {{ windows = 2 }}; {EXIT}
name = "low"; action = "shed_interactive"; scope = {{ classes = ["low"] }}; entry = {{ windows = 1 }}; {EXIT}
""",
        windows=WINDOWS,
    ),
    small(
        f"""\
name = "parts"; action = "drop_enrichment"; entry = {{ windows = 1, above = 4 }}; {EXIT}
name = "bulk"; action = "stop_bulk"; entry = {{ windows = 1, signal = "kv_used_ratio", above = 0.5 }}; {EXIT}
name = "lost"; action = "cap_output"; max_output_tokens = 9; \
entry = {{ windows = 1, signal = "replicas_lost", above = 0.5 }}; {EXIT}
name = "low"; action = "shed_interactive"; scope = {{ classes = ["low"] }}; entry = {{ windows = 2 }}; {EXIT}
""",
        windows=WINDOWS,
    ),
    small(
        f'name = "only"; action = "stop_bulk"; entry = {{ windows = 1 }}; {EXIT}',
        windows=f"{WINDOWS}\ndescend_needs_room = false",
    ),
)
waits = st.sampled_from((0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 9.0, 30.0, math.inf))
readings = st.builds(
    lambda ages, kv_used, lost: reading(*ages, kv_used=kv_used, lost=lost),
    st.lists(waits.filter(math.isfinite), max_size=3),
    st.sampled_from((None, 0.1, 0.25, 0.4, 0.5, 0.6)),
    st.integers(0, 1),
)


class Pool(RuleBasedStateMachine):
    """Random arrivals, windows, holds and reloads on one virtual clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.begin(LADDERS[0])

    @initialize(ladder=st.sampled_from(LADDERS))
    def begin(self, ladder: Ladder) -> None:
        self.pool = PoolLadder("chat", ladder, 2.0, 0.0)
        self.plain = PlainLadder(ladder, 2.0, 0.0)

    @rule(seconds=waits, arrivals=st.integers(1, 40), offered=st.integers(0, 3), let_in=st.integers(0, 3))
    def arrive(self, seconds: float, arrivals: int, offered: int, let_in: int) -> None:
        for _ in range(arrivals):
            self.pool.sample(seconds)
        self.pool.offered(640 * offered)
        self.pool.let_in(640 * let_in)
        self.plain.current.waits += [seconds] * arrivals
        self.plain.current.offered += 640 * offered
        self.plain.current.let_in += 640 * let_in

    @rule(
        windows=st.integers(1, 7),
        seconds=waits,
        slow=st.sampled_from((0, 1, 2, 40)),
        of=st.sampled_from((3, 4, 20, 40)),
        seen=readings,
        offered=st.integers(0, 2),
        let_in=st.integers(0, 2),
        late=st.sampled_from((0.0, 0.0, 0.0, 64.0)),
    )
    def stay(
        self,
        windows: int,
        seconds: float,
        slow: int,
        of: int,
        seen: PoolReading,
        offered: int,
        let_in: int,
        late: float,
    ) -> None:
        """Let some windows look alike, so that rows grow; now and then the process stands still."""
        for _ in range(windows):
            self.arrive(0.0, max(of - slow, 0), offered, let_in)
            self.arrive(seconds, min(slow, of), 0, 0)
            self.pass_until(max(self.plain.current.started_at + WINDOW_SECONDS + late, self.now), seen)

    @rule(above=st.integers(1, 3), calm=st.integers(1, 12), between=st.integers(0, 2), full=st.booleans())
    def swing(self, above: int, calm: int, between: int, full: bool) -> None:  # noqa: FBT001 - drawn
        """Let the pressure come, go and return, with or without room to go back."""
        for seconds, windows in ((9.0, above), (0.0, calm), (3.0, between), (9.0, above)):
            self.stay(windows, seconds, 40, 20, reading(kv_used=0.6 if seconds else 0.1), 1 + full, 1, 0.0)

    @rule(later=st.sampled_from((1.0, 16.0)), seen=readings)
    def pass_time(self, later: float, seen: PoolReading) -> None:
        self.pass_until(self.now + later, seen)

    def pass_until(self, now: float, seen: PoolReading) -> None:
        expected = []
        window_ends = self.plain.current.started_at + WINDOW_SECONDS
        ends = [(self.plain.held.until, "hold")] if self.plain.held else []
        for at, what in sorted([*ends, (window_ends, "window")]):
            if at > now:
                continue
            before, by_rule = len(self.plain.in_force()), self.plain.by_rule
            if what == "hold":
                self.plain.held = None
            else:
                self.plain.end_window(now, seen)
            if what == "hold" or self.plain.by_rule != by_rule:
                expected.append((before, len(self.plain.in_force())))
        steps = self.pool.advance(now, lambda: seen)
        assert [(step.before, step.after) for step in steps] == expected
        self.now = now

    @rule(which=st.sampled_from(("bulk", "low", "parts", "only")), seconds=st.sampled_from((-1.0, 10.0, 64.0, 300.0)))
    def hold(self, which: str, seconds: float) -> None:
        hold = Hold(which, self.now + seconds, "drawn")
        if self.plain.ladder.rung_number(which) is None:
            with pytest.raises(ValueError, match="has no rung"):
                self.pool.hold(hold, self.now)
            return
        before = len(self.plain.in_force())
        self.plain.held = hold if seconds > 0 else None
        self.tell(self.pool.hold(hold, self.now), before)

    @rule()
    def release(self) -> None:
        before = len(self.plain.in_force())
        self.plain.held = None
        self.tell(self.pool.release(), before)

    @rule(ladder=st.sampled_from(LADDERS))
    def renew(self, ladder: Ladder) -> None:
        before = self.plain.in_force()
        self.plain.renew(ladder, self.now)
        step = self.pool.renew(ladder, 2.0, self.now)
        assert (step is None) == (before == self.plain.in_force())

    def tell(self, step: Step | None, before: int) -> None:
        after = len(self.plain.in_force())
        assert (None if step is None else (step.before, step.after)) == (None if before == after else (before, after))

    @invariant()
    def they_agree(self) -> None:
        assert self.pool.check() == ()
        standing = self.pool.standing()
        assert [rung.name for rung in self.pool.in_force] == self.plain.in_force()
        assert (standing.by_rule, standing.hold) == (self.plain.by_rule, self.plain.held)
        assert standing.exit_windows == self.plain.exit_windows()
        assert standing.above_windows == self.plain.row("above")
        assert standing.calm_windows == self.plain.row("calm")
        if standing.window is not None:
            turn = self.plain.windows[-2].turn
            assert (standing.window.above, standing.window.calm) == (turn == "above", turn == "calm")
        assert self.now < self.pool.next_wakeup() <= self.now + WINDOW_SECONDS
        if standing.in_force:
            assert self.pool.back_in_seconds(standing.rung, self.now) > 0


class LongPool(Pool):
    """The same for longer."""


Pool.TestCase.settings = settings(max_examples=20, stateful_step_count=15)
TestPool = Pool.TestCase
LongPool.TestCase.settings = settings(max_examples=1500, stateful_step_count=30)
TestLongPool = pytest.mark.soak(LongPool.TestCase)
