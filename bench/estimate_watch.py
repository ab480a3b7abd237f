"""What waits were told and what they came to: a gate's words, followed without its estimates.

A request that was queued has waited from its `Enqueue` to its `Dispatch`; one that was turned away by time has waited
for at least that long. One that was refused is followed as a ghost: it would have fit as soon as all of this held

    tokens, seats   on some replica, were those that came later with its rank or a lower one away, and were the work
                    that waited before it placed first
    prefill         somebody who came later with its rank or a lower one was let in there, so that it would have been;
                    or, but for bulk beside interactive work, whose share of the rate comes and goes, a bucket of a
                    quarter of a second of the rate has no debt and prompts without a first token leave room for its own

The work ahead of it, which Retry-After tells of, has drained once it would have fit, and as many tokens were given back
as it and that work lacked, or where prefill binds as many prompt tokens were let in as that work has, together with
what earlier refusals of its rank had been told to come back for. Those sums are kept here for themselves: they grow by
each refusal's reservation and prompts, drain as tokens are given back and prompts are let in, and never exceed what a
minute brings, beyond which nobody is told to come back by himself. While nobody waits, no prompt is in flight and half
of every budget is free, both drain at no less than the rates that were seen before: those who were told to come back do
not come here, and there is room for them.
"""

from dataclasses import dataclass, field
from math import exp

from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict, Refuse, Released, RungChanged
from llmshed.admission.events import Event, FirstToken
from llmshed.admission.reasons import Reason
from llmshed.admission.request import SERVICE_RANKS, Lane
from llmshed.admission.verdict import DelayTerms, Verdict
from llmshed.whatif.gate import Gate
from llmshed.whatif.monitors.room import fits
from llmshed.whatif.monitors.seen import Account, Seen, Sight
from llmshed.whatif.setting import Setting

FOLLOWED = frozenset(
    {Reason.TOKEN_BUDGET_EXHAUSTED, Reason.PREFILL_WINDOW_FULL, Reason.QUEUE_FULL, Reason.CONCURRENCY_LIMIT}
)
"""Refusals that told a wait until room comes free."""
MOST_GHOSTS = 64
"""Ghosts that are followed at once: each costs a walk over what runs, fifty times a second."""
LOOK_SECONDS = 0.02
"""How often ghosts are looked at. A wait is counted longer by half of it in the mean, one part in a hundred of the
longest that interactive work is let wait."""
MOST_FOLLOWED_SECONDS = 180.0
"""After this a ghost is over; it counts with that time."""
PROMISED_SECONDS = 60.0
"""Longest wait that callers come back after by themselves."""
SPAN_SECONDS = 0.25
"""Part of a second whose prompts may be let in at once."""
RATE_SECONDS = 30.0
"""Time constant of the rate at which tokens are given back."""


@dataclass(frozen=True, slots=True)
class Told:
    """A wait that was told, and what it came to; all in seconds.

    Args:
        at: when it was told.
        estimate: the wait.
        actual: what it came to, or at least came to.
        ghost: whether it was refused, so that nobody waited.
        factor: by which the estimate is longer than its terms.
    """

    at: float
    estimate: float
    actual: float
    ghost: bool
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Return:
    """A Retry-After before jitter, and when the work ahead had drained; all in seconds."""

    at: float
    told: float
    drained: float


@dataclass(slots=True)
class _Ghost:
    seen: Seen
    at: float
    estimate: float
    factor: float
    retry_after: float | None
    ahead: list[int]
    drained_at_tokens: float
    drained_at_prompts: float


@dataclass(slots=True)
class _Drain:
    """What drains of one kind: all that did, its mean rate, and what was promised to each rank, in tokens."""

    total: float = 0.0
    promised: list[float] = field(default_factory=lambda: [0.0] * SERVICE_RANKS)
    _seen: float = 0.0
    _at: float = 0.0
    _lately: float = 0.0

    def drained(self, tokens: float, now: float) -> None:
        """Count what drained now."""
        self._seen = self._seen * exp((self._at - now) / RATE_SECONDS) + tokens
        self._at = now
        self._lately += tokens
        self._take(tokens)

    def look(self, since: float, now: float, *, idle: bool) -> None:
        """Look again: if there was room for all since the last look, count what could have drained beside what did."""
        if idle:
            self._take(max(0.0, (now - since) * self.rate(since) - self._lately))
            self._at = min(now, self._at + now - since)
        self._lately = 0.0

    def rate(self, now: float) -> float:
        """Return the mean of the last half minute, or of all the time since the beginning if that is shorter."""
        known = RATE_SECONDS * (1.0 - exp(-now / RATE_SECONDS))
        return self._seen * exp((self._at - now) / RATE_SECONDS) / known if now > 0.0 else 0.0

    def promise(self, rank: int, tokens: int, now: float) -> None:
        """Promise room, as far as a minute brings it."""
        self.promised[rank] = min(self.promised[rank] + tokens, PROMISED_SECONDS * self.rate(now))

    def _take(self, tokens: float) -> None:
        self.total += tokens
        self.promised = [max(0.0, promised - tokens) for promised in self.promised]


@dataclass(slots=True)
class _Prefill:
    """The prefill of one replica; `level_tokens` is what may be let in at once, negative in debt."""

    level_tokens: float = 0.0
    since: float = 0.0
    entries: list[tuple[int, int]] = field(default_factory=list)
    """Order of arrival and rank of each dispatch while there were ghosts."""
    inflight: dict[int, Seen] = field(default_factory=dict)


class EstimateWatch:
    """Passes everything on to a gate, and keeps what was told and what it came to."""

    def __init__(self, gate: Gate, setting: Setting) -> None:
        """Begin with a gate that holds nothing yet, all replicas of the setting up."""
        self._gate = gate
        self._sight = Sight(setting.policy, setting.specs)
        self._prefill = {spec.name: _Prefill() for spec in setting.specs}
        self._queued: dict[int, tuple[float, DelayTerms]] = {}
        self._ghosts: list[_Ghost] = []
        self._draining: list[_Ghost] = []
        self._looked_at = 0.0
        self._was_idle = False
        self._tokens = _Drain()
        self._prompts = _Drain()
        self.waits: list[Told] = []
        self.returns: list[Return] = []

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take one fact, as the gate does."""
        self._sight.hear(event, now)
        if isinstance(event, FirstToken):
            for prefill in self._prefill.values():
                prefill.inflight.pop(event.key, None)
        for action in (actions := self._gate.handle(event, now)):
            self._hear(action, now)
            self._sight.see(action, now)
        if now - self._looked_at >= LOOK_SECONDS:
            idle = self._is_idle()
            for drain in (self._tokens, self._prompts):
                drain.look(self._looked_at, now, idle=idle and self._was_idle)
            self._was_idle = idle
            self._looked_at = now
            self._look(now)
        return actions

    def next_wakeup(self) -> float | None:
        """Return when the gate wants a `Tick`."""
        return self._gate.next_wakeup()

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants of the gate."""
        return self._gate.check()

    def _hear(self, action: Action, now: float) -> None:
        match action:
            case Enqueue(key, _, verdict):
                if verdict.delay is not None:
                    self._queued[key] = (now, verdict.delay)
            case Dispatch(key, replica, verdict):
                self._end_wait(key, now)
                self._let_in(self._sight.requests[key], verdict, replica, now)
            case Evict(key, verdict):
                # Whoever gave its place to a higher class had its wait cut short by something that nobody foretold.
                if verdict.reason is Reason.QUEUE_TIMEOUT:
                    self._end_wait(key, now)
                self._queued.pop(key, None)
            case Released(key, replica, tokens):
                self._prefill[replica].inflight.pop(key, None)
                self._tokens.drained(tokens, now)
            case Refuse(key, verdict):
                if verdict.reason in FOLLOWED and verdict.delay is not None:
                    self._refused(self._sight.requests[key], verdict, now)
            case RungChanged():
                pass

    def _end_wait(self, key: int, now: float) -> None:
        if key in self._queued:
            at, delay = self._queued.pop(key)
            self.waits.append(Told(at, delay.wait_seconds, now - at, ghost=False, factor=delay.factor))

    def _let_in(self, seen: Seen, verdict: Verdict, replica: str, now: float) -> None:
        seen.told(verdict)
        prefill = self._prefill[replica]
        self._fill(prefill, self._sight.accounts[replica], now)
        prefill.level_tokens -= seen.input_tokens
        prefill.inflight[seen.request.key] = seen
        self._prompts.drained(seen.input_tokens, now)
        if self._ghosts:
            prefill.entries.append((seen.order, seen.rank))
        else:
            prefill.entries.clear()

    def _fill(self, prefill: _Prefill, account: Account, now: float) -> None:
        rate = account.budget.prefill_tokens_per_second or 0.0
        prefill.level_tokens = min(prefill.level_tokens + rate * (now - prefill.since), SPAN_SECONDS * rate)
        prefill.since = now

    def _is_idle(self) -> bool:
        """Say whether nobody waits, no prompt is in flight and half of every budget is free."""
        if self._sight.waiting or any(prefill.inflight for prefill in self._prefill.values()):
            return False
        accounts = [account for account in self._sight.accounts.values() if account.up]
        return all(2 * account.reserved_tokens < account.budget.safe_budget_tokens for account in accounts)

    def _refused(self, seen: Seen, verdict: Verdict, now: float) -> None:
        seen.told(verdict)
        accounts = self._sight.accounts_for(seen)
        if len(self._ghosts) < MOST_GHOSTS and verdict.delay is not None:
            waiting = [(key, one) for key, (_, one) in self._sight.waiting.items() if one.rank <= seen.rank]
            binds = verdict.reason is Reason.PREFILL_WINDOW_FULL
            prompts = sum(one.input_tokens for _, one in waiting) + self._prompts.promised[seen.rank]
            free = sum(account.budget.safe_budget_tokens - account.reserved_tokens for account in accounts)
            lack = max(0, seen.tokens + sum(one.tokens for _, one in waiting) - max(free, 0))
            self._ghosts.append(
                _Ghost(
                    seen=seen,
                    at=now,
                    estimate=verdict.delay.wait_seconds,
                    factor=verdict.delay.factor,
                    retry_after=verdict.retry_after_seconds,
                    ahead=[key for key, _ in waiting],
                    drained_at_tokens=self._tokens.total + lack + self._tokens.promised[seen.rank],
                    drained_at_prompts=self._prompts.total + prompts if binds else 0.0,
                )
            )
        self._tokens.promise(seen.rank, seen.tokens, now)
        self._prompts.promise(seen.rank, seen.input_tokens, now)

    def _look(self, now: float) -> None:
        left: list[_Ghost] = []
        for ghost in self._ghosts:
            if now - ghost.at < MOST_FOLLOWED_SECONDS and not self._would_fit(ghost, now):
                left.append(ghost)
                continue
            self.waits.append(Told(ghost.at, ghost.estimate, now - ghost.at, ghost=True, factor=ghost.factor))
            self._draining.append(ghost)
        self._ghosts = left
        for ghost in [one for one in self._draining if self._has_drained(one, now)]:
            self._draining.remove(ghost)
            if ghost.retry_after is not None:
                self.returns.append(Return(ghost.at, ghost.retry_after, now - ghost.at))

    def _has_drained(self, ghost: _Ghost, now: float) -> bool:
        if now - ghost.at >= MOST_FOLLOWED_SECONDS:
            return True
        return self._tokens.total >= ghost.drained_at_tokens and self._prompts.total >= ghost.drained_at_prompts

    def _would_fit(self, ghost: _Ghost, now: float) -> bool:
        seen = ghost.seen
        ahead = [self._sight.waiting[key][1] for key in ghost.ahead if key in self._sight.waiting]
        for account in self._sight.accounts_for(seen):
            without = {key for key, one in account.charges.items() if one.order > seen.order and one.rank >= seen.rank}
            if fits([account], without, ahead, seen) and self._would_be_let_in(ghost, account, now):
                return True
        return False

    def _would_be_let_in(self, ghost: _Ghost, account: Account, now: float) -> bool:
        rate, most = account.budget.prefill_tokens_per_second, account.budget.prefill_inflight_tokens
        prefill, seen = self._prefill[account.spec.name], ghost.seen
        if any(order > seen.order and rank >= seen.rank for order, rank in prefill.entries):
            return True
        if account.shared and seen.lane is Lane.BULK:
            return False
        self._fill(prefill, account, now)
        inflight = sum(one.input_tokens for one in prefill.inflight.values())
        crowded = most is not None and inflight > 0 and inflight + seen.input_tokens > most
        return not crowded and (rate is None or prefill.level_tokens > 0)
