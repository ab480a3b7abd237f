"""What a gate's events and actions tell of requests and replicas: who waits, who is charged where, since when."""

from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, assert_never

from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict, Refuse, Released, RungChanged
from llmshed.admission.events import (
    Arrived,
    BudgetChanged,
    Cancelled,
    Event,
    FirstToken,
    NotSent,
    PolicyChanged,
    ReplicaDown,
    ReplicaRemoved,
    ReplicaUp,
)
from llmshed.admission.policy import AdmissionPolicy, PoolPolicy, ReplicaBudget, ReplicaSpec
from llmshed.admission.request import Lane, PriorityClass, Request, service_rank
from llmshed.admission.verdict import Verdict
from llmshed.whatif.monitors.prompts import Prompts

HOLDS_SHADOW_AFTER_RATIO = 0.5
"""Part of its longest wait after which a waiting request may hold a shadow reservation."""


@dataclass(slots=True)
class Seen:
    """One request as it was told of.

    Args:
        request: what arrived.
        order: place of its arrival among all arrivals and dispatches.
        at: clock reading of its arrival.
        lane: its lane; as the next four, what the last verdict on it says.
        rank: place in the order of service, 0 first.
        tokens: its reservation.
        sequences: seats that it takes.
        input_tokens: its prompts.
        dispatched_order: as `order`, of its dispatch; None before that.
        aged: whether it had waited for so long, when it was dispatched, that it may have held a shadow reservation.
        resent: whether its replica was lost before it read it, so that it is told of once more.
    """

    request: Request
    order: int
    at: float
    lane: Lane = Lane.BULK
    rank: int = 0
    tokens: int = 0
    sequences: int = 1
    input_tokens: int = 0
    dispatched_order: int | None = None
    aged: bool = False
    resent: bool = False

    def told(self, verdict: Verdict) -> None:
        """Take what a verdict says of it; one that names no lane or reservation says nothing of that."""
        if verdict.lane is not None:
            self.lane = verdict.lane
            self.rank = service_rank(verdict.lane, verdict.priority_class or PriorityClass.NORMAL)
        if verdict.reservation is not None:
            self.tokens = verdict.reservation.total_tokens
            self.sequences = verdict.reservation.sequences
            self.input_tokens = verdict.reservation.input_tokens


class BulkDispatch(NamedTuple):
    """A bulk request that was sent to a replica.

    Args:
        key: the request.
        order: as in `Seen`.
        at: clock reading.
        input_tokens: its prompts.
        within_reserved: whether bulk held no more than its floor of reserved tokens then, or nothing before it.
    """

    key: int
    order: int
    at: float
    input_tokens: int
    within_reserved: bool


@dataclass(slots=True)
class Account:
    """What is charged on one replica, and what it may lend; `reserved_tokens` is the sum of its reservations."""

    spec: ReplicaSpec
    shared: bool
    budget: ReplicaBudget
    up: bool = True
    reserved_tokens: int = 0
    charges: dict[int, Seen] = field(default_factory=dict)
    bulk: deque[BulkDispatch] = field(default_factory=deque)
    prompts: Prompts = field(default_factory=Prompts)

    @property
    def bulk_tokens(self) -> int:
        """Return what bulk holds."""
        return sum(one.tokens for one in self.charges.values() if one.lane is Lane.BULK)


class Sight:
    """All that was seen.

    `waiting` keeps the pool beside each request that waits; `largest_input_tokens` is the largest prompt so far, and
    `largest_bulk_tokens` that of bulk.
    """

    def __init__(self, policy: AdmissionPolicy, specs: tuple[ReplicaSpec, ...]) -> None:
        """Begin with these replicas up and nobody there."""
        self.policy = policy
        self.accounts: dict[str, Account] = {}
        self.requests: dict[int, Seen] = {}
        self.waiting: dict[int, tuple[str, Seen]] = {}
        self.largest_input_tokens = 0
        self.largest_bulk_tokens = 0
        self._order = 0
        for spec in specs:
            self._come_up(spec)

    def hear(self, event: Event, now: float) -> None:
        """Take a fact that the gate was told."""
        match event:
            case Arrived(request):
                self.requests[request.key] = Seen(request, self._next_order(), now)
            case NotSent(key):
                self.requests[key].resent = True
            case FirstToken(key):
                self._prompt_over(key)
            case Cancelled(key) if key in self.waiting:
                del self.waiting[key], self.requests[key]
            case ReplicaUp(spec):
                self._come_up(spec)
            case ReplicaDown(name) | ReplicaRemoved(name):
                self.accounts[name].up = False
            case BudgetChanged(name, budget):
                self.accounts[name].budget = budget
            case PolicyChanged(policy):
                self.policy = policy
            case _:
                pass

    def see(self, action: Action, now: float) -> None:
        """Take a word of the gate."""
        match action:
            case Dispatch(key, replica, verdict):
                self._dispatch(self._told(key, verdict), self.accounts[replica], now)
            case Enqueue(key, pool, verdict):
                self.waiting[key] = (pool, self._told(key, verdict))
            case Refuse(key) | Evict(key):
                self.waiting.pop(key, None)
                self.requests.pop(key, None)
            case Released(key, replica):
                self._prompt_over(key)
                seen = self.accounts[replica].charges.pop(key)
                self.accounts[replica].reserved_tokens -= seen.tokens
                if seen.resent:
                    seen.resent = False
                else:
                    self.requests.pop(key, None)
            case RungChanged():
                pass
            case _:
                assert_never(action)

    def accounts_for(self, seen: Seen) -> list[Account]:
        """Return the replicas that are up and take a request's lane and model."""
        pools = {pool.name for pool in self._pools_for(seen)}
        return [one for one in self.accounts.values() if one.up and one.spec.pool in pools]

    def is_aged(self, seen: Seen, now: float) -> bool:
        """Say whether a waiting request has come to the age at which it may hold a shadow reservation."""
        longest = self.policy.lanes[seen.lane].max_residence_seconds
        deadlines = (seen.request.deadline, seen.request.first_token_deadline)
        left = min((deadline - seen.at for deadline in deadlines if deadline is not None), default=inf)
        return now - seen.at >= HOLDS_SHADOW_AFTER_RATIO * min(longest, left)

    def _pools_for(self, seen: Seen) -> list[PoolPolicy]:
        model = seen.request.model
        return [pool for pool in self.policy.pools if seen.lane in pool.lanes and pool.serves(model)]

    def _told(self, key: int, verdict: Verdict) -> Seen:
        seen = self.requests[key]
        seen.told(verdict)
        self.largest_input_tokens = max(self.largest_input_tokens, seen.input_tokens)
        if seen.lane is Lane.BULK:
            self.largest_bulk_tokens = max(self.largest_bulk_tokens, seen.input_tokens)
        return seen

    def _dispatch(self, seen: Seen, account: Account, now: float) -> None:
        key = seen.request.key
        seen.dispatched_order = self._next_order()
        seen.aged = self.waiting.pop(key, None) is not None and self.is_aged(seen, now)
        if seen.lane is Lane.BULK:
            before = account.bulk_tokens
            floor = account.budget.bulk.reserved_floor_ratio * account.budget.safe_budget_tokens
            within = account.shared and (before == 0 or before + seen.tokens <= floor)
            account.bulk.append(BulkDispatch(key, seen.dispatched_order, now, seen.input_tokens, within))
            self._forget_bulk(account)
        account.charges[key] = seen
        account.prompts.give(key, seen.input_tokens, seen.lane, account.budget, now)
        account.reserved_tokens += seen.tokens

    def _prompt_over(self, key: int) -> None:
        for account in self.accounts.values():
            account.prompts.seen(key)

    def _forget_bulk(self, account: Account) -> None:
        """Drop dispatches that were before everybody who waits."""
        _, oldest = next(iter(self.waiting.values()), (None, None))
        since = self._order if oldest is None else oldest.order
        while account.bulk and account.bulk[0].order < since:
            account.bulk.popleft()

    def _come_up(self, spec: ReplicaSpec) -> None:
        shared = any(pool.name == spec.pool and pool.shared for pool in self.policy.pools)
        known = self.accounts.get(spec.name)
        if known is None:
            self.accounts[spec.name] = Account(spec, shared, spec.budget)
        else:
            known.spec, known.shared, known.budget, known.up = spec, shared, spec.budget, True

    def _next_order(self) -> int:
        self._order += 1
        return self._order
