"""What a pool shows at the end of a window, beside the arrivals that were counted in it."""

from typing import NamedTuple

from llmshed.ladder.model import EntrySignal


class PoolReading(NamedTuple):
    """One look at a pool.

    Args:
        waiting_ages_seconds: how long each of its interactive requests that wait has waited.
        queued_prefill_tokens: prompt tokens that wait in it.
        kv_used_ratio: share of the KV cache in use, highest of its replicas; None where none tells.
        preemptions_over_budget: preemptions a minute by what the profiles permit; None where none tells.
        replicas_lost: replicas that were up and are down.
    """

    waiting_ages_seconds: tuple[float, ...]
    queued_prefill_tokens: int
    kv_used_ratio: float | None
    preemptions_over_budget: float | None
    replicas_lost: int

    @property
    def oldest_age_seconds(self) -> float:
        """Return the age of the request that waits longest; 0 where none waits."""
        return max(self.waiting_ages_seconds, default=0.0)

    def value(self, signal: EntrySignal) -> float | None:
        """Return what a signal reads; None where it is not told, and for the queue delay, which is no single look."""
        match signal:
            case EntrySignal.QUEUED_PREFILL:
                return self.queued_prefill_tokens
            case EntrySignal.OLDEST_AGE:
                return self.oldest_age_seconds
            case EntrySignal.KV_USED:
                return self.kv_used_ratio
            case EntrySignal.PREEMPTIONS:
                return self.preemptions_over_budget
            case EntrySignal.REPLICAS_LOST:
                return self.replicas_lost
            case EntrySignal.QUEUE_DELAY:
                return None
