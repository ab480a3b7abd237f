"""Virtual token counters: how much of the service each tenant has had, by its weight.

A tenant is served before all whose counter is higher. On its return from a time without waiting work its counter is
lifted to the level of those that wait, so that silence banks no credit.

A dispatch is counted with its reservation, and what was not used is given back when it ends. What ends after a lift but
was dispatched before it belongs to the time before: it gives back at most what the counter then exceeded the level by.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

MOST_IDLE_TENANTS = 10_000
"""Of the tenants that do not wait, so many are remembered, those that changed last."""
REBASE_AT = 2.0**44
"""A counter beyond this makes all be counted from a new zero; here a float still resolves 1/256 of a token."""


@dataclass(slots=True)
class Account:
    """One tenant's counter.

    Args:
        counter: tokens served per unit of weight.
        lifted_at: clock reading of the last lift.
        level: level at the last lift, below which nothing takes the counter back.
        spare: what dispatches of before the last lift may still give back, per unit of weight.
    """

    counter: float
    lifted_at: float
    level: float
    spare: float


class ServedTokens:
    """Counters in tokens per unit of weight, by tenant.

    A tenant that is forgotten comes back at the level, as an unknown one does. It gains by that only what it was ahead
    of the level, and only if `MOST_IDLE_TENANTS` others were served since it was last heard of; tenants are names that
    the operator gives, so nobody can bring that about by inventing some.

    Attributes:
        rebased: how often all counters were reduced, which keeps their order and their differences.
    """

    __slots__ = ("_accounts", "_idle", "_rebase_at", "rebased")

    def __init__(self) -> None:
        """Start with nobody known."""
        self._accounts: dict[str, Account] = {}
        self._idle: OrderedDict[str, None] = OrderedDict()  # tenants that do not wait, longest unchanged first
        self._rebase_at = REBASE_AT
        self.rebased = 0

    def __contains__(self, tenant: str) -> bool:
        """Say whether a tenant is known."""
        return tenant in self._accounts

    def of(self, tenant: str) -> float:
        """Return a tenant's counter; 0 for one that is not known."""
        account = self._accounts.get(tenant)
        return 0.0 if account is None else account.counter

    def lift(self, tenant: str, among: Iterable[str], now: float) -> None:
        """Note that a tenant waits again: its counter becomes at least the least of those that wait already."""
        level = min(map(self.of, among), default=0.0)
        counter = max(self.of(tenant), level)
        self._accounts[tenant] = Account(counter, now, level, counter - level)
        self._idle.pop(tenant, None)

    def rest(self, tenant: str) -> None:
        """Note that a tenant waits no more, so that it may be forgotten in time."""
        self._idle[tenant] = None
        if len(self._idle) > MOST_IDLE_TENANTS:
            forgotten, _ = self._idle.popitem(last=False)
            del self._accounts[forgotten]

    def charge(self, tenant: str, weight: float, tokens: int) -> None:
        """Count tokens of a known tenant as served, whether or not they waited; `weight` > 0."""
        account = self._accounts[tenant]
        account.counter += tokens / weight
        if tenant in self._idle:
            self._idle.move_to_end(tenant)
        if account.counter > self._rebase_at:
            self._rebase()

    def settle(self, tenant: str, weight: float, tokens: int, dispatched_at: float = math.inf) -> None:
        """Correct a charge to real usage: `tokens` is real less charged, so negative when less was used.

        Without the instant of its dispatch the charge is taken for one of after the last lift; with that of the lift
        itself for one of before, as in a burst that fills a replica and waits in one instant.
        """
        account = self._accounts.get(tenant)
        if account is None:  # it will start at the level, whatever it used
            return
        change = tokens / weight
        if dispatched_at <= account.lifted_at:
            change = max(change, -account.spare)
            account.spare += change
        account.counter = max(account.level, account.counter + change)

    def clear(self) -> None:
        """Forget all: when nobody waits, nobody is short of service, and all start level again."""
        self._accounts.clear()
        self._idle.clear()

    def _rebase(self) -> None:
        """Count from the level on. An idle tenant below it stops at 0: its return would lift it to the level anyway."""
        waiting = [account.counter for tenant, account in self._accounts.items() if tenant not in self._idle]
        level = min(waiting, default=0.0)
        for account in self._accounts.values():
            account.counter = max(0.0, account.counter - level)
            account.level = max(0.0, account.level - level)
        # While one that waits is far behind, little is gained; the next walk through all is then put off.
        self._rebase_at = max(REBASE_AT, 2.0 * max(account.counter for account in self._accounts.values()))
        self.rebased += 1
