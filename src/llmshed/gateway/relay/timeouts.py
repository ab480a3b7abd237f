"""How long an engine may be silent, by lane, and the one timer that watches it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from llmshed.config.lanes import BulkLane, InteractiveLane


@dataclass(frozen=True, slots=True)
class LaneTimeouts:
    """The silences that a lane permits, in seconds; there is no limit on the whole of a stream.

    Args:
        first_byte_seconds: from sending the request to the first data event of a stream.
        idle_seconds: between two data events of a stream that has begun. Keep-alive comments are no data: the engine's
            front sends them whether or not its GPU moves.
        token_seconds: added to `first_byte_seconds` for each output token of a whole (not streamed) answer, whose
            first byte comes after its last token.
    """

    first_byte_seconds: float
    idle_seconds: float
    token_seconds: float

    @classmethod
    def of_lane(cls, lane: InteractiveLane | BulkLane) -> Self:
        """Take the timeouts from a lane's settings; a token may take the lane's TPOT objective."""
        return cls(lane.first_byte_timeout_seconds, lane.idle_timeout_seconds, lane.tpot_objective_seconds)

    def whole_answer_seconds(self, output_ceiling_tokens: int) -> float:
        """Return how long an answer that is not streamed may take, for a ceiling in tokens of one sequence."""
        return self.first_byte_seconds + output_ceiling_tokens * self.token_seconds


UNHURRIED = LaneTimeouts(first_byte_seconds=86_400.0, idle_seconds=86_400.0, token_seconds=0.0)
"""Of a request that is only observed: a day, so that no silence of its engine ends it before its client does."""


class Watch:
    """One timer for the steps of a relay, of which each has its own limit and its own cure.

    Setting the next step's limit moves a deadline and leaves the timer where it is, so that a stream of thousands of
    chunks makes a handful of timers.
    """

    def __init__(self) -> None:
        """Watch nothing yet."""
        self._loop = asyncio.get_running_loop()
        self._deadline = float("inf")
        self._on_expiry: Callable[[], None] | None = None
        # For a time that has passed uvloop gives a plain handle, which cannot tell when: so the time is kept beside it.
        self._timer: asyncio.Handle | None = None
        self._timer_at = float("inf")
        self.expired = False

    def expect_within(self, seconds: float, on_expiry: Callable[[], None]) -> None:
        """Call `on_expiry` unless the next step is set or the watch stopped within `seconds`."""
        self.expect_by(self._loop.time() + seconds, on_expiry)

    def expect_by(self, deadline: float, on_expiry: Callable[[], None]) -> None:
        """Call `on_expiry` unless the next step is set or the watch stopped before `deadline` in loop time."""
        self._deadline = deadline
        self._on_expiry = on_expiry
        if self._timer is not None and self._timer_at > deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None and not self.expired:
            self._set_timer()

    def stop(self) -> None:
        """End the watch; nothing is called any more."""
        self._on_expiry = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        if self._deadline > self._loop.time():
            self._set_timer()
        elif self._on_expiry is not None:
            self.expired = True
            self._on_expiry()

    def _set_timer(self) -> None:
        self._timer = self._loop.call_at(self._deadline, self._fire)
        self._timer_at = self._deadline
