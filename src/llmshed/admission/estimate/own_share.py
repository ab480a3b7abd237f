"""Which part of what is dispatched a tenant's first arrivals ask for, so that its repeats expect only what they leave.

A request that was refused and comes again has mostly missed its objective already, and whoever serves it instead of one
that has not serves one good answer less: clients that try three times would take two thirds of a full fleet for answers
that come too late. So a repeat waits behind the first arrivals of its own tenant, and of no other: what one tenant's
clients send again costs the others nothing and gains it nothing.
"""

from collections import OrderedDict
from math import exp

MEMORY_SECONDS = 20.0
"""Time constant of the sums, that of the shares which higher classes take."""
MOST_TENANTS = 10_000
"""Tenants that are remembered; beyond that the one that came longest ago is forgotten, whose part has faded."""


class OwnShares:
    """What first arrivals ask for, by tenant, against what one pool dispatches.

    Asked for, not taken: while first arrivals alone are more than can be served, nothing is left for repeats.
    """

    __slots__ = ("_all", "_all_at", "_first")

    def __init__(self) -> None:
        """Start with no dispatches."""
        self._all = 0.0
        self._all_at = 0.0
        self._first: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def dispatched(self, tokens: int, now: float) -> None:
        """Note a dispatch and the tokens that it reserved."""
        self._all = _faded(self._all, self._all_at, now) + tokens
        self._all_at = now

    def asked(self, tenant: str, tokens: int, now: float) -> None:
        """Note a first arrival and the tokens that it asks for, whatever becomes of it."""
        known, at = self._first.pop(tenant, (0.0, now))
        self._first[tenant] = (_faded(known, at, now) + tokens, now)
        if len(self._first) > MOST_TENANTS:
            self._first.popitem(last=False)

    def ratio(self, tenant: str, now: float) -> float:
        """Return what the tenant's first arrivals asked for of late by all that was dispatched, at most 1."""
        known, at = self._first.get(tenant, (0.0, now))
        everything = _faded(self._all, self._all_at, now)
        return min(1.0, _faded(known, at, now) / everything) if everything > 0.0 else 0.0


def _faded(amount: float, at: float, now: float) -> float:
    return amount * exp((at - now) / MEMORY_SECONDS)
