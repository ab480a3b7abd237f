"""What a pool learns of itself while it serves: lengths, waits, what higher ranks take, what was promised."""

from collections.abc import Mapping
from typing import NamedTuple

from llmshed.admission.budget import Reservation
from llmshed.admission.estimate.delay import raw_wait_seconds
from llmshed.admission.estimate.factor import LearntFactor
from llmshed.admission.estimate.ghosts import Ghosts
from llmshed.admission.estimate.outputs import OutputModel
from llmshed.admission.estimate.own_share import OwnShares
from llmshed.admission.estimate.promises import PromisedWork
from llmshed.admission.estimate.share import LEAST_SHARE, ReleaseShares
from llmshed.admission.request import CLASSES, SERVICE_RANKS, Lane
from llmshed.admission.service.replica import AwaitedReplica
from llmshed.admission.verdict import DelayTerms

DRAIN_MARGIN = 1.25
"""What is promised drains in this times its mean time in nine cases of ten: the rates of half a minute differ by a
quarter where some ten answers end in it, and told too early a promise is broken."""


class FullRates(NamedTuple):
    """What a full pool gives back and takes in, each above 0."""

    tokens_per_second: float
    prompt_tokens_per_second: float


class Learnt:
    """The learnt parts of the delay estimate of one pool; `estimate` has their maths.

    Args:
        replicas: those of the pool, which come and go.
    """

    def __init__(self, replicas: Mapping[str, AwaitedReplica]) -> None:
        """Know nothing."""
        self._replicas = replicas
        self.outputs = OutputModel()
        self.shares = ReleaseShares()
        self.factors = [LearntFactor() for _ in range(SERVICE_RANKS)]
        self.own_shares = OwnShares()
        self.promised_tokens = [PromisedWork() for _ in range(SERVICE_RANKS)]
        self.promised_prompts = [PromisedWork() for _ in range(SERVICE_RANKS)]
        self._promises = (*self.promised_tokens, *self.promised_prompts)
        self.ghosts = Ghosts()

    def released(self, replica: str, tokens: int, now: float) -> None:
        """Note reserved tokens that came free on a replica."""
        self.shares.released(tokens, now)
        self.ghosts.came_free(replica, tokens)
        for promise, left in zip(self.promised_tokens, self.shares.left(now), strict=True):
            promise.released(tokens * left, now)

    def dispatched(self, replica: str, rank: int, reservation: Reservation, now: float) -> None:
        """Note work that went to a replica."""
        self.shares.took(rank, reservation.total_tokens, now)
        self.own_shares.dispatched(reservation.total_tokens, now)
        self.ghosts.dispatched(replica, rank, reservation.total_tokens, now)
        for lower in range(rank, SERVICE_RANKS):
            self.promised_prompts[lower].released(reservation.input_tokens, now)

    def idled(self, now: float) -> None:
        """Note that there was room for everybody since the last release or dispatch, whoever came for it."""
        for promise in self._promises:
            promise.idled(now)

    def share_left(self, rank: int, tenant: str, now: float, *, repeat: bool) -> float:
        """Return which part of what comes free a newcomer of that rank and tenant may expect, at least 0.02."""
        left = self.shares.left_for(rank, now)
        return max(LEAST_SHARE, left - self.own_shares.ratio(tenant, now)) if repeat else left

    def promised_seconds(self, rank: int, now: float) -> float:
        """Return how long what refused requests of a rank were promised takes to drain, tokens or prompts.

        At most 75 s: the minute that may be promised, with the margin.
        """
        return DRAIN_MARGIN * max(self.promised_tokens[rank].seconds(now), self.promised_prompts[rank].seconds(now))

    def waited(self, rank: int, delay: DelayTerms, seconds: float, now: float) -> None:
        """Learn from a wait that is over, at least that long, and from the refused ones that would have fit by now."""
        raw = raw_wait_seconds(delay.release_seconds, delay.prefill_seconds, delay.share)
        self.factors[rank].learn(raw, seconds, now)
        self.factors[rank].judge(delay.wait_seconds, seconds)

    def advance(self, now: float) -> None:
        """Learn from the refused ones that would have fit by now."""
        if not self.ghosts:
            return
        for ghost in self.ghosts.advance(now, self._room, self._takes_at):
            self.factors[ghost.rank].learn(ghost.raw_seconds, ghost.actual_seconds, now)
            self.factors[ghost.rank].judge(ghost.told_seconds, ghost.actual_seconds)

    def promise(self, rank: int, reservation: Reservation, full: FullRates, now: float) -> None:
        """Promise room to a refused request, in tokens and in the prefill window."""
        self.promised_tokens[rank].book(reservation.total_tokens, full.tokens_per_second, now)
        self.promised_prompts[rank].book(reservation.input_tokens, full.prompt_tokens_per_second, now)

    def follow(self, rank: int, delay: DelayTerms, reservation: Reservation, now: float) -> None:
        """Follow a refused request until it would have fit."""
        raw = raw_wait_seconds(delay.release_seconds, delay.prefill_seconds, delay.share)
        self.ghosts.follow(rank, raw, delay.wait_seconds, reservation, now)

    def _room(self) -> list[tuple[str, int]]:
        """Return the replicas that are up, each with the tokens that are free there."""
        return [(name, one.free_tokens - one.queued_tokens) for name, one in self._replicas.items() if one.up]

    def _takes_at(self, name: str, rank: int, reservation: Reservation, at: float) -> float | None:
        """Return when a replica that is known takes what has its tokens there: see `ghosts.TakesAt`."""
        replica = self._replicas[name]
        lane = Lane.INTERACTIVE if rank < len(CLASSES) else Lane.BULK
        if reservation.sequences > replica.free_sequences:
            return None
        if lane is Lane.BULK:
            room_tokens = replica.bulk_room_tokens(replica.budget.bulk.reserved_max_ratio, at)
            if reservation.total_tokens > room_tokens:
                return None
        if replica.window.admits(lane, reservation.input_tokens, at):
            return at
        return replica.window.ready_at(lane, reservation.input_tokens, at)
