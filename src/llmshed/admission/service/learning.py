"""What a pool learns of itself while it serves: lengths, waits, what higher ranks take, what was promised."""

from typing import NamedTuple

from llmshed.admission.budget import Reservation
from llmshed.admission.estimate.delay import raw_wait_seconds
from llmshed.admission.estimate.factor import LearntFactor
from llmshed.admission.estimate.ghosts import Ghosts
from llmshed.admission.estimate.outputs import OutputModel
from llmshed.admission.estimate.own_share import OwnShares
from llmshed.admission.estimate.promises import PromisedWork
from llmshed.admission.estimate.share import LEAST_SHARE, ReleaseShares
from llmshed.admission.request import SERVICE_RANKS
from llmshed.admission.verdict import DelayTerms


class FullRates(NamedTuple):
    """What a full pool gives back and takes in, each above 0."""

    tokens_per_second: float
    prompt_tokens_per_second: float


class Learnt:
    """The learnt parts of the delay estimate of one pool; `estimate` has their maths."""

    def __init__(self) -> None:
        """Know nothing."""
        self.outputs = OutputModel()
        self.shares = ReleaseShares()
        self.factors = [LearntFactor() for _ in range(SERVICE_RANKS)]
        self.own_shares = OwnShares()
        self.promised_tokens = [PromisedWork() for _ in range(SERVICE_RANKS)]
        self.promised_prompts = [PromisedWork() for _ in range(SERVICE_RANKS)]
        self.ghosts = Ghosts()

    def released(self, tokens: int, now: float) -> None:
        """Note reserved tokens that came free."""
        self.shares.released(tokens, now)
        self.ghosts.came_free(tokens)
        for promise, left in zip(self.promised_tokens, self.shares.left(now), strict=True):
            promise.released(tokens * left, now)

    def dispatched(self, rank: int, reservation: Reservation, now: float) -> None:
        """Note work that went to a replica."""
        self.shares.took(rank, reservation.total_tokens, now)
        self.own_shares.dispatched(reservation.total_tokens, now)
        self.ghosts.let_in(rank, reservation.input_tokens)
        for lower in range(rank, SERVICE_RANKS):
            self.promised_prompts[lower].released(reservation.input_tokens, now)

    def share_left(self, rank: int, tenant: str, now: float, *, repeat: bool) -> float:
        """Return which part of what comes free a newcomer of that rank and tenant may expect, at least 0.02."""
        left = self.shares.left_for(rank, now)
        return max(LEAST_SHARE, left - self.own_shares.ratio(tenant, now)) if repeat else left

    def promised_seconds(self, rank: int, now: float) -> float:
        """Return how long what refused requests of a rank were promised takes to drain, tokens or prompts."""
        return max(self.promised_tokens[rank].seconds(now), self.promised_prompts[rank].seconds(now))

    def waited(self, rank: int, delay: DelayTerms, seconds: float, now: float) -> None:
        """Learn from a wait that is over, at least that long, and from the refused ones that would have fit by now."""
        raw = raw_wait_seconds(delay.release_seconds, delay.prefill_seconds, delay.share)
        self.factors[rank].learn(raw, seconds, now)

    def advance(self, now: float) -> None:
        """Learn from the refused ones that would have fit by now."""
        if not self.ghosts:
            return
        for ghost in self.ghosts.advance(now):
            self.factors[ghost.rank].learn(ghost.raw_seconds, ghost.actual_seconds, now)

    def promise(self, rank: int, reservation: Reservation, full: FullRates, now: float) -> None:
        """Promise room to a refused request, in tokens and in the prefill window."""
        self.promised_tokens[rank].book(reservation.total_tokens, full.tokens_per_second, now)
        self.promised_prompts[rank].book(reservation.input_tokens, full.prompt_tokens_per_second, now)

    def follow(self, rank: int, delay: DelayTerms, lack_tokens: int, now: float) -> None:
        """Follow a refused request until it would have fit."""
        raw = raw_wait_seconds(delay.release_seconds, delay.prefill_seconds, delay.share)
        self.ghosts.follow(rank, raw, lack_tokens, delay.prefill_tokens_ahead, now)
