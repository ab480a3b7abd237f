"""The factor by which signals shrink one replica's budget: multiplicative down, additive up, with a timed way back."""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from llmshed.admission.policy import ReplicaBudget, ReplicaSpec
from llmshed.admission.signals.readings import LedgerView, ReplicaReading, Signal

FLOOR_RATIO = 0.25
"""Least factor. A replica that is sent nothing could not show that it is well again."""
SHRINK_RATIO = 0.7
"""One bad signal. Four of them reach the floor: 0.7, 0.49, 0.343, 0.25."""
SHRINK_SECONDS = 10.0
"""Least time between two of them: what runs must end before the effect of the last one can show."""
STEP_RATIO = 0.05
STEP_SECONDS = 10.0
"""Way back: from the floor to the whole in fifteen steps, slower than down, as in TCP's congestion control."""
EXPIRY_SECONDS = 60.0
"""How long what was heard counts: twelve readings of the default interval."""

QUEUE_EXCESS_SEQUENCES = 4
"""What may wait inside an engine unexplained: TGI queues a running sequence again at each 1,024 tokens."""
KV_FULL_RATIO = 0.95
KV_ROOM_RATIO = 0.8
"""Active share of the safe budget below which a full KV cache is not the gateway's own doing."""
PREEMPTION_WINDOW_SECONDS = 60.0
READINGS_IN_A_ROW = {Signal.QUEUE: 3, Signal.KV: 2, Signal.PREEMPTIONS: 1}
"""Readings in a row that make a signal. A queue may be long and a release not yet seen at one instant; a preemption
count is over a window already."""


class BudgetGovernor:
    """Judges what is heard of one replica and says what of its budget may be lent.

    Every method first takes the steps back that are due by `now`, so the caller owes no wake-up but that of
    `next_change`. `now` and the times of readings are of one monotonic clock.
    """

    def __init__(self, preemptions_per_minute: float | None = None) -> None:
        """Start with the whole budget; without a budget for preemptions their number is no signal."""
        self._preemptions_per_minute = preemptions_per_minute
        self._factor = 1.0
        self._blamed: dict[Signal, float] = {}  # what is wrong, until when that counts
        self._in_a_row: dict[Signal, int] = dict.fromkeys(READINGS_IN_A_ROW, 0)
        self._preemptions: deque[tuple[float, float]] = deque()
        self._shrunk_at = -math.inf
        self._quiet_from = -math.inf
        self.heard_at: float | None = None

    @property
    def factor(self) -> float:
        """Return the share of the safe budget that was lent when the governor was last asked or told anything."""
        return self._factor

    @property
    def causes(self) -> tuple[Signal, ...]:
        """Return what is held against the replica, as of the same time."""
        return tuple(sorted(self._blamed))

    @property
    def preemptions_over_budget(self) -> float | None:
        """Return the preemptions of the last minute that was heard of by their budget; None without either number."""
        if self._preemptions_per_minute is None or not self._preemptions:
            return None
        seen = self._preemptions[-1][1] - self._preemptions[0][1]
        if self._preemptions_per_minute > 0:
            return seen / self._preemptions_per_minute
        return math.inf if seen else 0.0

    def hear(self, reading: ReplicaReading, ledger: LedgerView, now: float) -> tuple[Signal, ...]:
        """Judge a reading and return the bad signals in it; one that cannot be true is `absurd` and changes nothing."""
        self._step_back(now)
        last = -math.inf if self.heard_at is None else self.heard_at
        if not reading.plausible or not last < reading.at <= now:
            return (Signal.ABSURD,)
        self.heard_at = reading.at
        bad = []
        for signal, is_bad in self._judged(reading, ledger):
            self._in_a_row[signal] = self._in_a_row[signal] + 1 if is_bad else 0
            if self._in_a_row[signal] >= READINGS_IN_A_ROW[signal]:
                self._blamed[signal] = now + EXPIRY_SECONDS
                bad.append(signal)
            elif is_bad is False:
                self._acquit(signal, now)
        if bad:
            self._shrink(now)
        return tuple(bad)

    def stalled(self, now: float) -> None:
        """Take the replica for stalled; told again for as long as it is."""
        self._step_back(now)
        self._blamed[Signal.STALL] = now + EXPIRY_SECONDS
        self._shrink(now)

    def recovered(self, now: float) -> None:
        """Take it for stalled no more."""
        self._step_back(now)
        self._acquit(Signal.STALL, now)

    def budget(self, spec: ReplicaSpec, now: float, kept_ratio: float = 1.0) -> ReplicaBudget:
        """Return what the replica may lend now of the `kept_ratio` that others than signals leave it."""
        self._step_back(now)
        return shrunk_budget(spec, self._factor * kept_ratio)

    def next_change(self) -> float | None:
        """Return when the next step back is due if nothing is heard until then; None with the whole budget."""
        if self._factor >= 1.0:
            return None
        return max((self._quiet_from, *self._blamed.values())) + STEP_SECONDS

    def check(self) -> tuple[str, ...]:
        """Return the invariants that do not hold, as sentences; empty when all do."""
        wrong = []
        if not FLOOR_RATIO <= self._factor <= 1.0:
            wrong.append(f"the budget's factor is {self._factor}")
        if (due := self.next_change()) is not None and not math.isfinite(due):
            wrong.append("a shrunk budget has no way back")
        if self._blamed and self._factor >= 1.0:
            wrong.append(f"{', '.join(self.causes)} shrinks nothing")
        return tuple(wrong)

    def _judged(self, reading: ReplicaReading, ledger: LedgerView) -> Iterator[tuple[Signal, bool | None]]:
        """Yield whether each signal is bad; None where the engine does not tell."""
        queued, kv = reading.queued_requests, reading.kv_used_ratio
        yield (
            Signal.QUEUE,
            None if queued is None else queued - ledger.waiting_sequences >= QUEUE_EXCESS_SEQUENCES,
        )
        yield Signal.KV, None if kv is None else kv > KV_FULL_RATIO and ledger.active_ratio < KV_ROOM_RATIO
        yield Signal.PREEMPTIONS, self._too_many_preemptions(reading)

    def _too_many_preemptions(self, reading: ReplicaReading) -> bool | None:
        """Say whether a minute's preemptions exceed their budget and still go on; None without either number."""
        total, most = reading.preemptions_total, self._preemptions_per_minute
        if total is None or most is None:
            return None
        seen = self._preemptions
        if seen and total < seen[-1][1]:
            seen.clear()  # the engine started anew
        go_on = bool(seen) and total > seen[-1][1]
        seen.append((reading.at, total))
        while reading.at - seen[0][0] > PREEMPTION_WINDOW_SECONDS:
            seen.popleft()
        return go_on and total - seen[0][1] > most

    def _shrink(self, now: float) -> None:
        if now - self._shrunk_at >= SHRINK_SECONDS:
            self._shrunk_at = now
            self._factor = max(FLOOR_RATIO, round(SHRINK_RATIO * self._factor, 6))

    def _acquit(self, signal: Signal, now: float) -> None:
        if self._blamed.pop(signal, None) is not None:
            self._quiet_from = max(self._quiet_from, now)

    def _step_back(self, now: float) -> None:
        """Let what has expired count no more, and take the steps that are due since nothing was wrong."""
        for signal, until in list(self._blamed.items()):
            if until <= now:
                self._acquit(signal, until)
        while not self._blamed and self._factor < 1.0 and self._quiet_from + STEP_SECONDS <= now:
            self._quiet_from += STEP_SECONDS
            self._factor = min(1.0, round(self._factor + STEP_RATIO, 6))


def shrunk_budget(spec: ReplicaSpec, ratio: float) -> ReplicaBudget:
    """Return a replica's budget with that share of its safe budget; `spec.budget` itself when nothing shrinks it.

    It always holds one sequence of the largest size that the replica takes, so that no request is locked out.
    """
    whole = spec.budget.safe_budget_tokens
    safe = max(math.ceil(round(ratio * whole, 6)), spec.limits.max_total_tokens)
    return spec.budget if safe >= whole else _with_safe_budget(spec.budget, safe)


def _with_safe_budget(budget: ReplicaBudget, safe_tokens: int) -> ReplicaBudget:
    """Return the budget with the least gross ceiling that leaves `safe_tokens` after its guard band."""
    gross = math.floor(safe_tokens / (1.0 - budget.guard_band_ratio))
    shrunk = replace(budget, gross_ceiling_tokens=gross)
    while shrunk.safe_budget_tokens < safe_tokens:
        gross += 1
        shrunk = replace(budget, gross_ceiling_tokens=gross)
    return shrunk
