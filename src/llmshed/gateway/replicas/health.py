"""When a replica counts as down: only what proves that it serves nobody, never that it is slow."""

from dataclasses import dataclass

HARD_FAILURES = 3
"""Failures in a row after which a replica is down."""


@dataclass(slots=True)
class ReplicaHealth:
    """What is known of one replica's health.

    A connection that is refused is a hard failure: nothing listens there. An engine that says of itself that it is ill
    is one too, unless it is the last of its pool: its clients then get its own errors, which tell more than our guess.
    A probe that takes too long proves nothing, since an engine answers it behind a long step.

    Args:
        answered_at: clock reading of the last answer to live traffic or a probe.
        refusals: connections refused in a row.
        complaints: times in a row that the engine called itself ill.
    """

    answered_at: float = float("-inf")
    refusals: int = 0
    complaints: int = 0

    def answered(self, now: float) -> None:
        """Note an answer: whatever came before is over."""
        self.answered_at = now
        self.refusals = 0
        self.complaints = 0

    def refused(self) -> None:
        """Note a connection that the replica did not take."""
        self.refusals += 1

    def slow(self) -> None:
        """Note a probe that was taken but not answered in time: it can be reached, and nothing else is known."""
        self.refusals = 0

    def complained(self) -> None:
        """Note that the engine called itself ill, which also shows that it can be reached."""
        self.refusals = 0
        self.complaints += 1

    @property
    def suspected(self) -> bool:
        """Say whether the next probe should come soon."""
        return self.refusals > 0 or self.complaints > 0

    def is_down(self, *, is_last: bool) -> bool:
        """Say whether the replica takes no more work; `is_last` when no other of its pool is up."""
        return self.refusals >= HARD_FAILURES or (self.complaints >= HARD_FAILURES and not is_last)
