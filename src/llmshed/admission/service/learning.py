"""What a pool learns of itself while it serves: lengths, waits, what higher ranks take, what was promised."""

from llmshed.admission.estimate.delay import raw_wait_seconds
from llmshed.admission.estimate.factor import LearntFactor
from llmshed.admission.estimate.ghosts import Ghosts
from llmshed.admission.estimate.outputs import OutputModel
from llmshed.admission.estimate.promises import PromisedWork
from llmshed.admission.estimate.share import ReleaseShares
from llmshed.admission.request import SERVICE_RANKS
from llmshed.admission.verdict import DelayTerms


class Learnt:
    """The learnt parts of the delay estimate of one pool; `estimate` has their maths."""

    def __init__(self) -> None:
        """Know nothing."""
        self.outputs = OutputModel()
        self.shares = ReleaseShares()
        self.factors = [LearntFactor() for _ in range(SERVICE_RANKS)]
        self.promises = [PromisedWork() for _ in range(SERVICE_RANKS)]
        self.ghosts = Ghosts()

    def released(self, tokens: int, now: float) -> None:
        """Note reserved tokens that came free."""
        self.shares.released(tokens, now)
        self.ghosts.came_free(tokens)
        for rank, promise in enumerate(self.promises):
            promise.released(tokens * self.shares.left_for(rank, now), now)

    def dispatched(self, rank: int, tokens: int, prompt_tokens: int, now: float) -> None:
        """Note work that went to a replica."""
        self.shares.took(rank, tokens, now)
        self.ghosts.let_in(rank, prompt_tokens)

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

    def promised(self, rank: int, tokens: int, full_tokens_per_second: float, now: float) -> None:
        """Promise room to a refused request."""
        self.promises[rank].book(tokens, full_tokens_per_second, now)

    def follow(self, rank: int, delay: DelayTerms, lack_tokens: int, now: float) -> None:
        """Follow a refused request until it would have fit."""
        raw = raw_wait_seconds(delay.release_seconds, delay.prefill_seconds, delay.share)
        self.ghosts.follow(rank, raw, lack_tokens, delay.prefill_tokens_ahead, now)
