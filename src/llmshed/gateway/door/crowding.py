"""Who has to go when there are more connections than the process has descriptors for.

A newcomer takes the place of the connection that has been idle longest: clients open another when they next need one.
Connections that carry a request are never closed for it. So a crowd that opens connections and says nothing displaces
itself, and nobody whose request runs.

Connections stand in the order in which they were last known to be at work. The foremost is looked at: one that is at
work now goes to the end, which is where it belongs by that order; the first idle one is what was looked for. A look
costs the same however many there are.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from llmshed.observability.metrics import Displaced

MOST_LOOKED_AT = 64
"""Connections at work that are passed over for one newcomer; beyond that it is the newcomer that is closed."""


class Displaceable(Protocol):
    """A connection, as far as its place is concerned."""

    @property
    def may_go(self) -> bool:
        """Say whether it carries no request."""

    def force_close(self) -> None:
        """Close it."""


class Places:
    """The places of a listener; `most` is their number."""

    def __init__(self, most: int, tell: Callable[[Displaced], None]) -> None:
        """Start empty; `tell` hears of each connection that is closed for want of room."""
        self.most = most
        self._tell = tell
        self._by_last_work: OrderedDict[Displaceable, None] = OrderedDict()

    def __len__(self) -> int:
        """Return how many are taken."""
        return len(self._by_last_work)

    def take(self, newcomer: Displaceable) -> None:
        """Give a place to a new connection, or close it where everybody is at work."""
        places = self._by_last_work
        places[newcomer] = None
        if len(places) <= self.most:
            return
        for _ in range(min(MOST_LOOKED_AT, self.most)):
            foremost, _ = places.popitem(last=False)
            if foremost.may_go:
                foremost.force_close()
                self._tell(Displaced.IDLE)
                return
            places[foremost] = None
        self.leave(newcomer)
        newcomer.force_close()
        self._tell(Displaced.NEWCOMER)

    def worked(self, connection: Displaceable) -> None:
        """Note that a connection has just carried a request."""
        if connection in self._by_last_work:
            self._by_last_work.move_to_end(connection)

    def leave(self, connection: Displaceable) -> None:
        """Take back the place of a connection that is gone; it may have lost it before."""
        self._by_last_work.pop(connection, None)
