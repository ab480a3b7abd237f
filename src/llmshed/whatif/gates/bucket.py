"""A rate limit on prompt tokens: what API gateways do with tokens per minute."""

from collections.abc import Callable, Iterable, Sequence
from math import isfinite

from llmshed.admission.events import Event, ReplicaDown, ReplicaRemoved, ReplicaUp
from llmshed.admission.reasons import Reason
from llmshed.admission.replica import Replica
from llmshed.whatif.gates.books import Books
from llmshed.whatif.gates.rule import Rule, TurnAway, least_outstanding
from llmshed.whatif.gates.work import Work

BURST_SECONDS = 2.0
"""Burst by default, in seconds of the rate: the TTFT objective of interactive work. More could not start in time."""


class TokenBucket(Rule):
    """Prompt tokens of a pool, at a rate and with a burst, and refused above.

    The bucket holds `burst_seconds` of the rate. A prompt passes when the bucket holds its tokens, or is full: one that
    is larger than any bucket passes too, and leaves a debt. Answers cost nothing, as nobody knows their length.

    Args:
        books: the replicas; those that are up make the rate of their pool.
        tokens_per_second: returns the rate of one replica.
        burst_seconds: size of the bucket in seconds of the rate.
    """

    def __init__(
        self, books: Books, tokens_per_second: Callable[[Replica], float], burst_seconds: float = BURST_SECONDS
    ) -> None:
        """Start with full buckets."""
        if not (burst_seconds > 0 and isfinite(burst_seconds)):
            raise ValueError(f"a burst of {burst_seconds:g} seconds is none; accepted is more than 0")
        self._books = books
        self._tokens_per_second = tokens_per_second
        self._burst_seconds = burst_seconds
        self._levels: dict[str, float] = {}
        self._filled_at: dict[str, float] = {}

    def place(
        self,
        work: Work,
        candidates: Sequence[Replica],
        behind: Iterable[Work],  # noqa: ARG002 - rules look at what they need
        now: float,
    ) -> Replica | TurnAway:
        """Return the least used replica of the pools whose bucket lets the prompt pass."""
        need = work.request.input_tokens
        waits: list[float] = []
        passing: list[Replica] = []
        for pool in sorted({replica.spec.pool for replica in candidates}):
            self._fill(pool, now)
            missing = min(need, self._size(pool)) - self._levels[pool]
            # A millionth of a token, so that a client that comes back after exactly the told wait is not refused.
            if missing <= 1e-6:
                passing += [replica for replica in candidates if replica.spec.pool == pool]
            else:
                waits.append(missing / self._rate(pool))
        if passing:
            return least_outstanding(passing)
        detail = f"{need:,} prompt tokens exceed what the rate leaves for the next {min(waits):.3f} s"
        return TurnAway(Reason.TOKEN_BUDGET_EXHAUSTED, detail, min(waits))

    def sent(self, work: Work, replica: Replica, now: float) -> None:
        """Take the prompt's tokens out."""
        self._fill(replica.spec.pool, now)
        self._levels[replica.spec.pool] -= work.request.input_tokens

    def observe(self, event: Event, now: float) -> None:
        """Fill all buckets at the old rate before it changes."""
        if isinstance(event, ReplicaUp | ReplicaDown | ReplicaRemoved):
            for pool in self._levels:
                self._fill(pool, now)

    def check(self) -> list[str]:
        """Return the buckets that hold more than they may."""
        return [
            f"the bucket of pool {pool} holds {level:g} tokens, more than the largest rate gives"
            for pool, level in self._levels.items()
            if level > self._largest_size(pool) + 1e-6
        ]

    def _fill(self, pool: str, now: float) -> None:
        size = self._size(pool)
        level = self._levels.get(pool, size) + self._rate(pool) * (now - self._filled_at.get(pool, now))
        self._levels[pool] = min(level, size)
        self._filled_at[pool] = now

    def _rate(self, pool: str) -> float:
        return sum(self._tokens_per_second(r) for r in self._books.replicas if r.up and r.spec.pool == pool)

    def _size(self, pool: str) -> float:
        return self._rate(pool) * self._burst_seconds

    def _largest_size(self, pool: str) -> float:
        rates = (self._tokens_per_second(r) for r in self._books.replicas if r.spec.pool == pool)
        return sum(rates) * self._burst_seconds
