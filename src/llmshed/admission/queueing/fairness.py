"""Virtual token counters: how much of the service each tenant has had, by its weight.

A tenant is served before all whose counter is higher. On its return from a time without waiting work its counter is
lifted to the level of those that wait, so that silence banks no credit. While nobody waits, nobody is short of service
and time itself makes the level: the highest counter ever charged, at which all meet again.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

MOST_IDLE_TENANTS = 10_000
"""Of the tenants that do not wait, so many are remembered, those that changed last."""
REBASE_AT = 2.0**44
"""A counter beyond this makes all be counted from a new zero; here a float still resolves 1/256 of a token."""


@dataclass(slots=True)
class Account:
    """One tenant's counter, and the level below which no settlement takes it back."""

    counter: float = 0.0
    floor: float = 0.0


class ServedTokens:
    """Counters in tokens per unit of weight, by tenant.

    A tenant that is forgotten comes back at the level, as an unknown one does. It gains by that only what it was ahead
    of the level, and only if `MOST_IDLE_TENANTS` others were served since it was last heard of; tenants are names that
    the operator gives, so nobody can bring that about by inventing some.

    Attributes:
        rebased: how often all counters were reduced, which keeps their order and their differences.
    """

    def __init__(self) -> None:
        """Start with nobody known."""
        self._accounts: dict[str, Account] = {}
        self._idle: OrderedDict[str, None] = OrderedDict()  # tenants that do not wait, longest unchanged first
        self._level = 0.0
        self._rebase_at = REBASE_AT
        self.rebased = 0

    def of(self, tenant: str) -> float:
        """Return a tenant's counter; 0 for one that is not known."""
        account = self._accounts.get(tenant)
        return 0.0 if account is None else account.counter

    def level(self, among: Iterable[str]) -> float:
        """Return the least counter of the tenants that wait; with none, the highest that was ever charged."""
        return min(map(self.of, among), default=self._level)

    def lift(self, tenant: str, among: Iterable[str]) -> None:
        """Note that a tenant waits again: its counter becomes at least the level of those that wait already."""
        account = self._accounts.get(tenant)
        if account is None:
            account = self._accounts[tenant] = Account()
        account.floor = self.level(among)
        account.counter = max(account.counter, account.floor)
        self._idle.pop(tenant, None)

    def rest(self, tenant: str) -> None:
        """Note that a tenant waits no more, so that it may be forgotten in time."""
        self._touch(tenant)

    def charge(self, tenant: str, weight: float, tokens: int) -> None:
        """Count tokens as served, whether or not they waited; `weight` > 0."""
        account = self._accounts.get(tenant)
        if account is None:
            account = self._accounts[tenant] = Account()
            self._touch(tenant)
        elif tenant in self._idle:
            self._touch(tenant)
        account.counter += tokens / weight
        self._level = max(self._level, account.counter)
        if account.counter > self._rebase_at:
            self._rebase()

    def settle(self, tenant: str, weight: float, tokens: int) -> None:
        """Correct a charge to real usage: `tokens` is real less charged, so negative when less was used.

        The counter goes back at most to the level of the tenant's last return: service refused to nobody earns none.
        """
        account = self._accounts.get(tenant)
        if account is not None:  # a forgotten one starts at the level whatever it used
            account.counter = max(account.floor, account.counter + tokens / weight)

    def _touch(self, tenant: str) -> None:
        """Put a tenant last among the idle, and forget the first beyond the bound."""
        self._idle[tenant] = None
        self._idle.move_to_end(tenant)
        if len(self._idle) > MOST_IDLE_TENANTS:
            forgotten, _ = self._idle.popitem(last=False)
            del self._accounts[forgotten]

    def _rebase(self) -> None:
        """Count from the level on. An idle tenant below it stops at 0: it would be lifted above that on its return."""
        zero = self.level(tenant for tenant in self._accounts if tenant not in self._idle)
        for account in self._accounts.values():
            account.counter = max(0.0, account.counter - zero)
            account.floor = max(0.0, account.floor - zero)
        self._level = max(0.0, self._level - zero)
        # While one that waits is far behind, little was gained; the next walk through all is then put off.
        self._rebase_at = max(REBASE_AT, 2.0 * self._level)
        self.rebased += 1
