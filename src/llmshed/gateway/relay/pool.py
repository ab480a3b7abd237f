"""Idle connections to replicas, kept for a moment and used again, the one that was used last first."""

import asyncio

from llmshed.gateway.relay.connection import Connection

Origin = tuple[str, int]
"""Host and port."""

_ROUNDING_SECONDS = 0.001
"""What a difference of two readings may be rounded by: the timer would be due at once, again and again."""


class ConnectionPool:
    """Knows every connection that is open, and which of them are free.

    One timer closes what has been free for too long. The last one used goes first, so that after a burst the others
    grow old together.
    """

    def __init__(self, idle_seconds: float) -> None:
        """Keep a free connection for so many seconds; needs a running loop."""
        self._loop = asyncio.get_running_loop()
        self._idle_seconds = idle_seconds
        self._origins: dict[Connection, Origin] = {}
        self._free: dict[Origin, dict[Connection, None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def new(self, origin: Origin) -> Connection:
        """Return a connection that is yet to be made; it reports here when it is free, and when it is gone."""
        connection = Connection(self._loop, self._put, self.forget)
        self._origins[connection] = origin
        return connection

    def take(self, origin: Origin) -> Connection | None:
        """Return a free connection, which then is no more; None when there is none."""
        free = self._free.get(origin)
        while free:
            connection, _ = free.popitem()
            if connection.is_usable:
                return connection
        return None

    def forget(self, connection: Connection) -> None:
        """Forget a connection that is gone, or that never came about."""
        origin = self._origins.pop(connection, None)
        if origin is not None and (free := self._free.get(origin)) is not None:
            free.pop(connection, None)
            if not free:
                del self._free[origin]

    def close(self) -> None:
        """Close every connection, those at work too."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection in list(self._origins):
            connection.close()

    def _put(self, connection: Connection) -> None:
        connection.free_since = self._loop.time()
        self._free.setdefault(self._origins[connection], {})[connection] = None
        if self._timer is None:
            self._timer = self._loop.call_later(self._idle_seconds, self._close_old)

    def _close_old(self) -> None:
        self._timer = None
        freed_by = self._loop.time() - self._idle_seconds + _ROUNDING_SECONDS
        next_at: float | None = None
        for free in list(self._free.values()):
            for connection in list(free):  # in the order in which they came free
                if connection.free_since > freed_by:
                    due = connection.free_since + self._idle_seconds
                    next_at = due if next_at is None else min(next_at, due)
                    break
                del free[connection]
                connection.abort()
        if next_at is not None:
            self._timer = self._loop.call_at(next_at, self._close_old)
