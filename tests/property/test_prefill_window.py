"""The prefill window under any order of dispatches, first tokens, endings and quiet.

The model keeps what was let in and what is in flight by itself. `ready_at` is held against a copy of the window to
which nothing happens but time.
"""

import copy

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from llmshed.admission.policy import BulkShare, ModelLimits, ReplicaBudget, ReplicaSpec
from llmshed.admission.prefill.window import WINDOW_SECONDS, PrefillWindow
from llmshed.admission.request import Lane

LANES = st.sampled_from([Lane.INTERACTIVE, Lane.BULK])
TOKENS = st.one_of(st.integers(1, 600), st.integers(1, 9_000))
PAUSES = st.one_of(st.sampled_from([0.0, 0.25, 1.0, 7.0]), st.floats(0.0, 3.0))
RATES = st.sampled_from([None, 500.0, 1_000.0, 9_999.0])
BOUNDS = st.sampled_from([None, 400, 1_000, 5_000])
SHARES = st.sampled_from([BulkShare(), BulkShare(0.5, 0.05, 0.0, 0.0), BulkShare(0.5, 0.05, 1.0, 0.5)])


class Windows(RuleBasedStateMachine):
    """One replica's window, and prompts that come only where it admits them."""

    @initialize(rate=RATES, bound=BOUNDS, bulk=SHARES, shared=st.booleans(), blocking=st.booleans())
    def start(self, rate: float | None, bound: int | None, bulk: BulkShare, *, shared: bool, blocking: bool) -> None:
        budget = ReplicaBudget(
            96_000, 0.1, 64, prefill_tokens_per_second=rate, prefill_inflight_tokens=bound, bulk=bulk
        )
        spec = ReplicaSpec("a", "p", budget, ModelLimits(64_000, 65_000), prefill_blocks_starts=blocking)
        self.now = 50.0
        self.rate = rate
        self.window = PrefillWindow(spec, shared=shared, engine_share_seconds=1e9, now=self.now)
        self.bound = bound
        self.keys = 0
        self.inflight: dict[int, tuple[int, bool]] = {}  # tokens, streamed
        self.let_in: dict[int, tuple[float, int]] = {}  # when, tokens

    @rule(pause=PAUSES)
    def wait(self, pause: float) -> None:
        self.now += pause

    @rule(lane=LANES, tokens=TOKENS, streamed=st.booleans(), ceiling=st.sampled_from([10, 5_000]))
    def ask(self, lane: Lane, tokens: int, *, streamed: bool, ceiling: int) -> None:
        if lane is Lane.INTERACTIVE:
            self.window.interactive_came(self.now)
        if not self.window.admits(lane, tokens, self.now):
            assert self.window.wait_seconds(lane, 0, tokens, self.now) >= 0
            return
        assert self.window.wait_seconds(lane, 0, tokens, self.now) == 0
        held = self.window.terms(self.now).inflight_tokens
        if self.bound is not None and held and held + tokens > self.bound:
            assert lane is Lane.BULK
            assert held <= self.bound
            assert self.window.within_floor(tokens, self.now)
        assert self.within_rate()
        self.keys += 1
        self.window.take(self.keys, lane, tokens, self.now, streamed=streamed, output_ceiling_tokens=ceiling)
        self.inflight[self.keys] = (tokens, streamed)
        self.let_in[self.keys] = (self.now, tokens)

    @precondition(lambda self: self.inflight)
    @rule(data=st.data())
    def first_token(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.inflight)))
        self.window.first_token(key, self.now)
        del self.inflight[key]

    @precondition(lambda self: self.inflight)
    @rule(data=st.data(), read=st.booleans())
    def end(self, data: st.DataObject, *, read: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.inflight)))
        del self.inflight[key]
        if read:
            self.window.end(key, self.now)
            return
        before = self.window.terms(self.now).inflight_tokens
        self.window.refund(key, self.now)
        if self.window.terms(self.now).inflight_tokens < before:  # it had not left already, as predicted
            del self.let_in[key]

    @rule(waiting=st.booleans())
    def bulk_waits(self, *, waiting: bool) -> None:
        self.window.bulk_waits(self.now, waiting=waiting)

    @rule(lane=LANES, tokens=TOKENS)
    def ready_at(self, lane: Lane, tokens: int) -> None:
        """Compare with a copy that sees nothing but time, at instants before, and at the instant itself."""
        other = copy.deepcopy(self.window)

        def goes(now: float) -> tuple[bool, bool]:
            return other.admits(lane, tokens, now), lane is Lane.BULK and other.within_floor(tokens, now)

        before = goes(self.now)
        at = self.window.ready_at(lane, tokens, self.now)
        until = self.now + 1e6 if at is None else at
        for part in (0.001, 0.3, 0.7, 0.999):
            assert not turns(before, goes(self.now + part * (until - self.now)))
        assert at is None or (at > self.now and turns(before, goes(at)))

    @invariant()
    def holds(self) -> None:
        assert self.window.check() == []
        least = sum(tokens for tokens, streamed in self.inflight.values() if streamed)
        most = sum(tokens for tokens, _ in self.inflight.values())
        assert least <= self.window.terms(self.now).inflight_tokens <= most

    def within_rate(self) -> bool:
        """Say whether what was let in since any earlier prompt, this one apart, is within the window and the rate."""
        total = 0
        for since, tokens in reversed(self.let_in.values()):
            total += tokens
            if self.rate is not None and total > self.rate * (WINDOW_SECONDS + self.now - since) + 1e-3:
                return False
        return True


def turns(before: tuple[bool, bool], after: tuple[bool, bool]) -> bool:
    """Say whether an answer is True that was False."""
    return any(new and not old for old, new in zip(before, after, strict=True))


Windows.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestWindows = pytest.mark.slow(Windows.TestCase)
