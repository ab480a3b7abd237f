"""Bulk's part of the prefill over long runs, on a made engine that works on prompts in their order.

The door of these runs is the simplest there is: bulk within its floor first, then interactive work, then bulk.
"""

from collections import deque
from collections.abc import Iterator
from itertools import cycle, pairwise, repeat

import pytest

from llmshed.admission.policy import ModelLimits, ReplicaBudget, ReplicaSpec
from llmshed.admission.prefill.window import PrefillWindow
from llmshed.admission.request import Lane

RATE = 400.0
BUDGET = ReplicaBudget(96_000, 0.1, 64, prefill_tokens_per_second=RATE, prefill_inflight_tokens=600)
INTERACTIVE_TOKENS = 200


class Run:
    """One replica, bulk that always waits, and interactive work that always waits or comes every so often."""

    def __init__(self, bulk: Iterator[int], *, blocking: bool = False, interactive_every: float | None = None) -> None:
        spec = ReplicaSpec("a", "p", BUDGET, ModelLimits(64_000, 65_000), prefill_blocks_starts=blocking)
        self.window = PrefillWindow(spec, shared=True, engine_share_seconds=1.4, now=0.0)
        self.window.bulk_waits(0.0, waiting=True)
        self.bulk = bulk
        self.head = next(bulk)
        self.every = interactive_every
        self.due = 0.0
        self.now = 0.0
        self.keys = 0
        self.engine: deque[tuple[float, int]] = deque()
        self.starts: list[tuple[float, Lane, int]] = []

    def until(self, end: float) -> None:
        """Run to that instant."""
        while self.now < end:
            while self.start_one():
                pass
            asked = [self.window.ready_at(Lane.BULK, self.head, self.now)]
            asked += [self.window.ready_at(Lane.INTERACTIVE, INTERACTIVE_TOKENS, self.now)]
            times = [end, *(at for at in asked if at is not None)]
            times += [at for at, _ in list(self.engine)[:1]]
            times += [] if self.every is None else [self.due]
            self.now = min(at for at in times if at > self.now)
            while self.engine and self.engine[0][0] <= self.now:
                self.window.first_token(self.engine.popleft()[1], self.now)

    def start_one(self) -> bool:
        """Dispatch whoever comes first, if anybody may go."""
        waits = self.every is None or self.due <= self.now
        if waits:
            self.window.interactive_came(self.now)
        if self.goes(Lane.BULK, self.head) and (not waits or self.window.within_floor(self.head, self.now)):
            self.start(Lane.BULK, self.head)
            self.head = next(self.bulk)
            return True
        if waits and self.goes(Lane.INTERACTIVE, INTERACTIVE_TOKENS):
            self.start(Lane.INTERACTIVE, INTERACTIVE_TOKENS)
            self.due = self.now + (self.every or 0.0)
            return True
        return False

    def goes(self, lane: Lane, tokens: int) -> bool:
        return self.window.admits(lane, tokens, self.now)

    def start(self, lane: Lane, tokens: int) -> None:
        self.keys += 1
        self.window.take(self.keys, lane, tokens, self.now, streamed=True, output_ceiling_tokens=10)
        before = self.engine[-1][0] if self.engine else self.now
        self.engine.append((max(self.now, before) + tokens / (1.2 * RATE), self.keys))
        self.starts.append((self.now, lane, tokens))

    def ratio(self, lane: Lane, since: float, until: float) -> float:
        """Return a lane's part of the rate in that time."""
        tokens = sum(tokens for at, of, tokens in self.starts if of is lane and since <= at < until)
        return tokens / (RATE * (until - since))


@pytest.mark.slow
def test_bulk_gets_its_floor_in_any_ten_minutes_while_interactive_work_always_waits() -> None:
    run = Run(cycle([200, 80, 40]))
    run.until(1_200.0)
    ratios = [run.ratio(Lane.BULK, 60.0 * minute, 60.0 * minute + 600.0) for minute in range(11)]
    assert all(0.9 * 0.05 <= ratio <= 1.1 * 0.05 for ratio in ratios)
    assert run.ratio(Lane.INTERACTIVE, 0.0, 1_200.0) == pytest.approx(0.95, abs=0.01)
    assert run.window.bulk_share(1_200.0) == pytest.approx(0.05, rel=0.2)


@pytest.mark.slow
def test_the_floor_is_there_at_once_after_an_hour_in_which_bulk_had_the_replica_to_itself() -> None:
    run = Run(repeat(200), interactive_every=float("inf"))
    run.due = 300.0
    run.until(299.0)
    assert run.ratio(Lane.BULK, 0.0, 299.0) == pytest.approx(1.0, abs=0.01)
    run.every = None
    run.until(901.0)
    assert 0.9 * 0.05 <= run.ratio(Lane.BULK, 301.0, 901.0) <= 1.1 * 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("blocking", "cap"), [(False, 0.3), (True, 0.05)])
def test_bulk_gets_no_more_than_its_cap_while_interactive_work_comes(cap: float, *, blocking: bool) -> None:
    run = Run(cycle([200, 60]), blocking=blocking, interactive_every=4.0)
    run.until(600.0)
    assert run.ratio(Lane.BULK, 0.0, 600.0) == pytest.approx(cap, rel=0.05)


@pytest.mark.slow
def test_the_cap_is_gone_between_interactive_requests_that_are_far_apart() -> None:
    run = Run(repeat(100), interactive_every=25.0)
    run.until(500.0)
    assert run.ratio(Lane.BULK, 0.0, 500.0) == pytest.approx((5 * 0.3 + 20 * 1.0) / 25, rel=0.1)


@pytest.mark.slow
def test_a_prompt_of_many_windows_is_not_held_up_by_short_ones_behind_or_before_it() -> None:
    run = Run(cycle([200] * 7 + [2_400]))
    run.until(1_200.0)
    bulk = [(at, tokens) for at, lane, tokens in run.starts if lane is Lane.BULK]
    waits = [later - earlier for (earlier, _), (later, tokens) in pairwise(bulk) if tokens == 2_400]
    # It comes to the head when the one before it goes, and that one's 200 tokens are paid off at 20 a second.
    assert len(waits) >= 5
    assert max(waits) < 10.0 + 2_400 / RATE
