"""Refused requests that are followed until they would have fit, so that the estimate learns from refusals too.

An estimate that is too long refuses what could have been served, and what is refused shows no wait: without ghosts the
error would feed itself. A ghost of rank r would have waited for n reserved tokens (what it and the queued work ahead of
it lacked) and for p prompt tokens of that work. Per rank two running totals are kept:

    gained(r)  tokens that came free - tokens of work of a higher rank that was accepted since
    let in(r)  prompt tokens of ranks up to r that were dispatched - those of higher ranks that were accepted since

A ghost would have fit as soon as the first total has grown by n and the second by p. Work of its own rank that was
accepted before it is in n and p; what came after it would have been served after it and counts nowhere.
"""

from heapq import heapify, heappop, heappush
from typing import NamedTuple

from llmshed.admission.estimate.factor import MOST_FACTOR
from llmshed.admission.request import SERVICE_RANKS

MOST_PER_RANK = 64
"""How many ghosts of a rank are followed at once; a refusal beyond that is not followed."""
SLACK_SECONDS = 1.0
"""A ghost is given up at `MOST_FACTOR` x its estimate + this, when no factor could have covered its wait any more."""
MOST_RAW_SECONDS = 150.0
"""Longest estimate that is followed: beyond it a ghost would be over after ten minutes, too late to teach."""

_Targets = list[tuple[float, int]]


class Followed(NamedTuple):
    """A ghost that is over: its estimate with a factor of 1, and how long it would have waited, at least."""

    rank: int
    raw_seconds: float
    actual_seconds: float


class _Ghost(NamedTuple):
    rank: int
    raw_seconds: float
    refused_at: float
    prompt_target: float


class Ghosts:
    """The ghosts of one pool; `fitted` and `given_up` count those that are over."""

    __slots__ = (
        "_alive",
        "_gained",
        "_let_in",
        "_number",
        "_of_rank",
        "_prompts",
        "_times",
        "_tokens",
        "fitted",
        "given_up",
    )

    def __init__(self) -> None:
        """Follow nothing."""
        self._gained = [0] * SERVICE_RANKS
        self._let_in = [0] * SERVICE_RANKS
        self._number = 0
        self._alive: dict[int, _Ghost] = {}
        self._of_rank = [0] * SERVICE_RANKS
        # Heaps of (target, number): what each rank's totals have to reach, and when a ghost is given up.
        self._tokens: list[_Targets] = [[] for _ in range(SERVICE_RANKS)]
        self._prompts: list[_Targets] = [[] for _ in range(SERVICE_RANKS)]
        self._times: _Targets = []
        self.fitted = 0
        self.given_up = 0

    def __len__(self) -> int:
        """Return how many are followed now."""
        return len(self._alive)

    def came_free(self, tokens: int) -> None:
        """Note reserved tokens that were given back, or that a larger budget added; negative for a smaller one."""
        for rank in range(SERVICE_RANKS):
            self._gained[rank] += tokens

    def accepted(self, rank: int, tokens: int, prompt_tokens: int) -> None:
        """Note work that was queued or dispatched on its arrival: lower ranks would have been served after it."""
        for lower in range(rank + 1, SERVICE_RANKS):
            self._gained[lower] -= tokens
            self._let_in[lower] -= prompt_tokens

    def withdrawn(self, rank: int, tokens: int, prompt_tokens: int) -> None:
        """Note accepted work that left its queue without being dispatched."""
        self.accepted(rank, -tokens, -prompt_tokens)

    def let_in(self, rank: int, prompt_tokens: int) -> None:
        """Note prompt tokens that were dispatched."""
        for lower in range(rank, SERVICE_RANKS):
            self._let_in[lower] += prompt_tokens

    def follow(self, rank: int, raw_seconds: float, tokens: float, prompt_tokens: float, now: float) -> bool:
        """Follow a request that is refused now; False when its rank has enough ghosts or its estimate is too long.

        Args:
            rank: its place in the order of service.
            raw_seconds: its estimate with a factor of 1.
            tokens: reserved tokens that it and the queued work ahead of it lack beyond what is free.
            prompt_tokens: prompt tokens of that queued work.
            now: clock reading of the refusal.
        """
        if self._of_rank[rank] >= MOST_PER_RANK or raw_seconds > MOST_RAW_SECONDS:
            return False
        self._number += 1
        self._alive[self._number] = _Ghost(rank, raw_seconds, now, self._let_in[rank] + prompt_tokens)
        self._of_rank[rank] += 1
        self._push(self._tokens[rank], self._gained[rank] + tokens, self._number)
        self._push(self._times, now + MOST_FACTOR * raw_seconds + SLACK_SECONDS, self._number)
        return True

    def advance(self, now: float) -> list[Followed]:
        """Return the ghosts that would have fit by now, and those that are given up."""
        over: list[Followed] = []
        for rank, followed in enumerate(self._of_rank):
            if followed:
                over += self._fit(rank, now)
        while self._times and self._times[0][0] <= now:
            number = heappop(self._times)[1]
            if number in self._alive:
                self.given_up += 1
                over.append(self._end(number, now))
        return over

    def _fit(self, rank: int, now: float) -> list[Followed]:
        fit = []
        waiting, prompts = self._tokens[rank], self._prompts[rank]
        while waiting and waiting[0][0] <= self._gained[rank]:
            number = heappop(waiting)[1]
            if number in self._alive:
                self._push(prompts, self._alive[number].prompt_target, number)
        while prompts and prompts[0][0] <= self._let_in[rank]:
            number = heappop(prompts)[1]
            if number in self._alive:
                self.fitted += 1
                fit.append(self._end(number, now))
        return fit

    def _end(self, number: int, now: float) -> Followed:
        ghost = self._alive.pop(number)
        self._of_rank[ghost.rank] -= 1
        return Followed(ghost.rank, ghost.raw_seconds, now - ghost.refused_at)

    def _push(self, heap: _Targets, target: float, number: int) -> None:
        """Push, and throw out what is over when that is most of a heap, so that none grows without bound."""
        if len(heap) > 4 * MOST_PER_RANK * SERVICE_RANKS:
            heap[:] = [entry for entry in heap if entry[1] in self._alive]
            heapify(heap)
        heappush(heap, (target, number))
