"""When a refused client is told to come back, and whether it should at all."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from llmshed.admission.reasons import Reason, Retry

SHORTEST_WAIT_SECONDS = 1.0
"""Retry-After counts whole seconds, so a shorter wait could not be told to all clients alike; npm's openai takes a 0 as
`at once`."""

UNKNOWN_BUSY_WAIT_SECONDS = 1.0
UNKNOWN_OUTAGE_WAIT_SECONDS = 5.0
"""Told where there is no estimate: when to ask again, not when it will have cleared."""

LONGEST_WAIT_SECONDS = 86_400.0
"""A day; a longer estimate says nothing that a client could use."""


@dataclass(frozen=True, slots=True)
class RetryAdvice:
    """What the headers say about trying again.

    Args:
        wait_ms: the wait after jitter, in whole milliseconds; None where no Retry-After is sent.
        should_not: whether `x-should-retry: false` is sent. `true` never is: clients obey it on any status.
    """

    wait_ms: int | None
    should_not: bool

    @property
    def wait_seconds(self) -> int | None:
        """Return the whole seconds of Retry-After, rounded up, so that neither header comes before the other's wait."""
        return None if self.wait_ms is None else -(-self.wait_ms // 1000)


@dataclass(frozen=True, slots=True)
class RetryRule:
    """Draws each refusal's own wait, since no client spreads a Retry-After by itself.

    Args:
        draw: uniform numbers in 0..1.
        jitter_ratio: the wait is drawn between the estimate and (1 + this) times it, >= 0.
        max_retry_after_seconds: estimates above it are told truly but with `x-should-retry: false`, since clients
            then hammer, block or give up; the jitter of an estimate below it stays below it too.
    """

    draw: Callable[[], float]
    jitter_ratio: float
    max_retry_after_seconds: float

    def advise(self, reason: Reason, status: int, estimate_seconds: float | None) -> RetryAdvice:
        """Return the advice for a refusal with this reason, told under `status`."""
        match reason.row.retry:
            case Retry.NEVER | Retry.UNSAFE:
                return RetryAdvice(None, should_not=True)
            case Retry.LATER:
                # A Retry-After on a 413 would be read as "temporary", and makes urllib3 send it again.
                if status not in {409, 429, 503}:
                    return RetryAdvice(None, should_not=True)
                estimate = _usable(estimate_seconds, status)
                should_not = estimate > self.max_retry_after_seconds or reason is Reason.DEADLINE_INFEASIBLE
                return RetryAdvice(self._jittered_ms(estimate), should_not)
            case _ as unreachable:
                assert_never(unreachable)

    def _jittered_ms(self, estimate_seconds: float) -> int:
        """Return a wait that is drawn upward only: nobody is told less than the estimate."""
        latest = estimate_seconds * (1.0 + self.jitter_ratio)
        if estimate_seconds <= self.max_retry_after_seconds:
            latest = min(latest, self.max_retry_after_seconds)
        return math.ceil(1000.0 * (estimate_seconds + (latest - estimate_seconds) * self.draw()))


def _usable(estimate_seconds: float | None, status: int) -> float:
    """Return the estimate within the bounds that a header can tell."""
    if estimate_seconds is None or math.isnan(estimate_seconds):
        return UNKNOWN_OUTAGE_WAIT_SECONDS if status == 503 else UNKNOWN_BUSY_WAIT_SECONDS
    return min(max(estimate_seconds, SHORTEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS)
