"""The only place in the package where time is read."""

import time
from typing import Protocol


class Clock(Protocol):
    """Where `now` comes from: the machine in the daemon, a test's own hand elsewhere."""

    def now(self) -> float:
        """Return seconds on a monotonic scale; only differences mean anything."""

    def wall(self) -> float:
        """Return seconds since the epoch, for logs and file names, never for a decision."""


class SystemClock:
    """The machine's clocks; decisions use the monotonic one, so a step of the wall clock changes nothing."""

    def now(self) -> float:
        """Return `time.monotonic()`."""
        return time.monotonic()  # noqa: TID251 - this is the module that the ban points to

    def wall(self) -> float:
        """Return `time.time()`."""
        return time.time()  # noqa: TID251 - this is the module that the ban points to
