"""The time of one exchange: it ends when the request's own deadline passes, or when the gateway gives it up."""

import asyncio
import math

from llmshed.admission.request import Request


class Term:
    """Cancels what runs inside `timeout` when the request's deadline passes, or when the exchange is broken off.

    Until the answer begins the earlier of the two deadlines holds, from then on that of the whole answer. One timer
    serves both, set once and moved at most once.

    Args:
        request: whose deadlines hold; without any the term has no end of its own.
        now: the clock reading at this moment, which ties the clock to the loop's time.
    """

    def __init__(self, request: Request, now: float) -> None:
        """Start the term; needs a running loop."""
        self._loop = asyncio.get_running_loop()
        self._arrived_at = request.arrived_at
        self._whole_by = math.inf if request.deadline is None else request.deadline
        first_token_by = math.inf if request.first_token_deadline is None else request.first_token_deadline
        self._ahead = self._loop.time() - now
        self._ends_at = min(self._whole_by, first_token_by)
        self.broken_off = False
        self.timeout = asyncio.timeout_at(self._loop_time())

    @property
    def granted_seconds(self) -> float:
        """Return the deadline in force, in seconds from the arrival of the request; infinite without one."""
        return self._ends_at - self._arrived_at

    @property
    def awaits_beginning(self) -> bool:
        """Say whether the deadline in force is that of the first token."""
        return self._ends_at < self._whole_by

    def answer_began(self) -> None:
        """Forget the deadline of the first token: the first event of the answer has come."""
        if self.awaits_beginning and not self.timeout.expired() and not self.broken_off:
            self._ends_at = self._whole_by
            self.timeout.reschedule(self._loop_time())

    def break_off(self) -> None:
        """End the term now, unless a deadline just did."""
        if not self.timeout.expired():
            self.broken_off = True
            self.timeout.reschedule(self._loop.time())

    def _loop_time(self) -> float | None:
        return None if self._ends_at == math.inf else self._ends_at + self._ahead
