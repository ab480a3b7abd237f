"""What was read of a replica at one time, and what the ledger knows beside it."""

import math
from dataclasses import dataclass
from enum import StrEnum

MOST_QUEUED_REQUESTS = 1e6
"""No engine's queue is longer: TGI permits 128 by default, and sockets end long before."""
MOST_KV_RATIO = 1.05
"""A little above full: an engine may hold blocks that it does not count in its total."""
MOST_PREEMPTIONS = 1e15
"""Beyond what a counter of an engine can reach: doubles are exact up to 9e15."""


class Signal(StrEnum):
    """What can be wrong with a replica; the value is a metric's label."""

    QUEUE = "queue"
    """More waits inside the engine than was sent to it and has not begun."""
    KV = "kv"
    """Its KV cache is full although the ledger says that there is room: something else uses the replica."""
    PREEMPTIONS = "preemptions"
    """It recomputes sequences more often than its profile permits."""
    STALL = "stall"
    """Requests run there and nothing has come from it for much longer than its work explains."""
    ABSURD = "absurd"
    """A reading that cannot be true; it changes nothing."""


@dataclass(frozen=True, slots=True)
class ReplicaReading:
    """What an engine told; None where it does not tell.

    Args:
        at: clock reading when it was read.
        queued_requests: sequences that wait inside the engine.
        kv_used_ratio: share of its KV cache that sequences hold.
        preemptions_total: sequences that it has thrown out to recompute, since it started.
    """

    at: float
    queued_requests: float | None = None
    kv_used_ratio: float | None = None
    preemptions_total: float | None = None

    @property
    def tells(self) -> bool:
        """Say whether it holds any signal at all."""
        return any(told is not None for told in (self.queued_requests, self.kv_used_ratio, self.preemptions_total))

    @property
    def plausible(self) -> bool:
        """Say whether every value can be true: a number, not negative, not beyond what an engine can reach."""
        bounds = (
            (self.queued_requests, MOST_QUEUED_REQUESTS),
            (self.kv_used_ratio, MOST_KV_RATIO),
            (self.preemptions_total, MOST_PREEMPTIONS),
        )
        return math.isfinite(self.at) and all(value is None or 0 <= value <= most for value, most in bounds)


@dataclass(frozen=True, slots=True)
class LedgerView:
    """What the gateway itself knows of a replica while it is read.

    Args:
        waiting_sequences: sequences that it holds, those of gone clients included, whose answers have not begun.
        active_ratio: active tokens as a share of the safe budget that no signal has shrunk.
    """

    waiting_sequences: int
    active_ratio: float
