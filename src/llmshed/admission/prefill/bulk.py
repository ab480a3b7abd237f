"""Bulk's part of the prefill of a replica that interactive work shares: its cap and its floor."""

from typing import NamedTuple

from llmshed.admission.policy import BulkShare
from llmshed.admission.prefill.bucket import DebtBucket
from llmshed.admission.release import UNKNOWN_PREFILL_TOKENS_PER_SECOND

INTERACTIVE_RECENT_SECONDS = 5.0
"""How long the cap binds after an interactive request: over the gaps of a stream of them, and soon gone after it."""
CAP_RATIO = 0.3
"""Most of the prefill rate for bulk where nobody says otherwise."""
BLOCKING_CAP_RATIO = 0.05
"""The same where a prompt holds up every start: there a cap of a third would put a third of all interactive requests
behind a bulk prompt."""
CAP_SPAN_SECONDS = 1.0
"""What the cap lets in at once, in seconds of its rate: bulk that was held up for less loses nothing of its cap."""
FLOOR_SPAN_SECONDS = 10.0
"""What the floor owes at most: bulk may be held up so long by the release of tokens and lose nothing of its floor, and
what then comes at once is half a second of prefill at a floor of 5 %."""


class BulkCharge(NamedTuple):
    """What a prompt took from the cap and from the floor, to be given back if the replica never read it."""

    cap_tokens: float
    floor_tokens: float


def cap_ratio(share: BulkShare, *, blocking: bool) -> float:
    """Return the most of the prefill rate that bulk may have while interactive work comes; what is stated is obeyed."""
    if share.prefill_cap_ratio is not None:
        return share.prefill_cap_ratio
    return max(BLOCKING_CAP_RATIO if blocking else CAP_RATIO, share.prefill_floor_ratio)


class BulkPart:
    """The cap and the floor of bulk on one shared replica.

    Args:
        share: the ratios in force.
        tokens_per_second: prefill rate of the replica. None when unknown: no cap is metered then, and the floor is a
            ratio of the rate that is assumed, so that bulk is not forgotten where nobody measured.
        blocking: whether a prompt holds up every start there.
        now: clock reading.
    """

    __slots__ = ("_barred", "_blocking", "_cap", "_floor", "_lifted_at", "_waiting")

    def __init__(self, share: BulkShare, tokens_per_second: float | None, *, blocking: bool, now: float) -> None:
        """Start without interactive work, waiting bulk or debt."""
        self._blocking = blocking
        self._cap: DebtBucket | None = None
        self._floor: DebtBucket | None = None
        self._barred = False  # a cap of nothing
        self._lifted_at = float("-inf")
        self._waiting = False
        self.renew(share, tokens_per_second, now)

    def renew(self, share: BulkShare, tokens_per_second: float | None, now: float) -> None:
        """Put other ratios or another rate in force; debts stay."""
        ratio = cap_ratio(share, blocking=self._blocking)
        self._barred = tokens_per_second is not None and ratio == 0
        self._cap = _renewed(self._cap, ratio * (tokens_per_second or 0.0), CAP_SPAN_SECONDS, now)
        floor_rate = share.prefill_floor_ratio * (tokens_per_second or UNKNOWN_PREFILL_TOKENS_PER_SECOND)
        self._floor = _renewed(self._floor, floor_rate, FLOOR_SPAN_SECONDS if self._waiting else 0.0, now)

    def interactive_came(self, now: float) -> None:
        """Bind bulk to its cap for the next seconds; what a lifted cap would have let in is not owed."""
        if now >= self._lifted_at and self._cap is not None:
            self._cap.forget(now)
        self._lifted_at = now + INTERACTIVE_RECENT_SECONDS

    def waits(self, now: float, *, waiting: bool) -> None:
        """Let the floor's credit grow from now on, or no longer; credit that nobody waits for is lost."""
        if self._floor is not None and waiting != self._waiting:
            self._floor.forget(now)
            self._floor.span_seconds = FLOOR_SPAN_SECONDS if waiting else 0.0
        self._waiting = waiting

    def under_cap(self, now: float) -> bool:
        """Say whether the cap lets a prompt in."""
        return self.cap_opens_at(now) <= now

    def cap_opens_at(self, now: float) -> float:
        """Return the instant from which the cap lets a prompt in, in the past if it does."""
        if not self._capped(now):
            return now
        if self._barred:
            return self._lifted_at
        return now if self._cap is None else min(self._cap.paid_at, self._lifted_at)

    def cap_seconds(self, ahead_tokens: float, now: float) -> float:
        """Return how long the cap holds up a prompt behind that many tokens of bulk while interactive work comes."""
        if not self._capped(now):
            return 0.0
        if self._barred:
            return self._lifted_at - now
        return 0.0 if self._cap is None else self._cap.seconds_until(ahead_tokens, now)

    def within_floor(self, now: float) -> bool:
        """Say whether the floor lets a prompt in."""
        return self._floor is not None and self._floor.open(now)

    def floor_opens_at(self) -> float | None:
        """Return the instant from which the floor lets a prompt in, in the past if it does; None without a floor."""
        return None if self._floor is None else self._floor.paid_at

    def take(self, tokens: int, now: float) -> BulkCharge:
        """Charge a bulk prompt that is dispatched."""
        cap_tokens = floor_tokens = 0.0
        if self._cap is not None and self._capped(now):
            cap_tokens = float(tokens)
            self._cap.take(cap_tokens, now)
        if self._floor is not None:
            # Beyond the floor a prompt costs credit until the debt is as large as this prompt, and no more.
            floor_tokens = min(float(tokens), max(0.0, self._floor.level(now) + tokens))
            self._floor.take(floor_tokens, now)
        return BulkCharge(cap_tokens, floor_tokens)

    def give_back(self, charge: BulkCharge) -> None:
        """Return what a prompt took that the replica never read."""
        if self._cap is not None:
            self._cap.give_back(charge.cap_tokens)
        if self._floor is not None:
            self._floor.give_back(charge.floor_tokens)

    def cap_level(self, now: float) -> float | None:
        """Return the tokens that the cap leaves to bulk; None while it does not bind."""
        if not self._capped(now):
            return None
        if self._barred:
            return 0.0
        return None if self._cap is None else self._cap.level(now)

    def credit(self, now: float) -> float:
        """Return the tokens that the floor owes to bulk, negative while bulk is ahead of it."""
        return 0.0 if self._floor is None else self._floor.level(now)

    def _capped(self, now: float) -> bool:
        return now < self._lifted_at


def _renewed(bucket: DebtBucket | None, rate: float, span_seconds: float, now: float) -> DebtBucket | None:
    """Return the bucket at another rate, a new one without anything in it, or none for a rate of nothing."""
    if rate <= 0:
        return None
    if bucket is None:
        bucket = DebtBucket(rate, span_seconds, now)
        bucket.forget(now)
    else:
        bucket.renew(rate, now)
    return bucket
