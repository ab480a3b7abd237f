"""Pick a replica by what it has free."""

from collections.abc import Iterable
from typing import NamedTuple


class Candidate(NamedTuple):
    """A replica where a request fits, with what would be left there.

    Args:
        name: the replica's name.
        headroom_tokens: tokens free before the request is charged.
        free_sequences: sequence seats free before it is charged.
    """

    name: str
    headroom_tokens: int
    free_sequences: int


def most_headroom(candidates: Iterable[Candidate]) -> Candidate | None:
    """Return the candidate with the most free tokens, then the most free seats, then the first name; None of none.

    Token headroom comes first because prefill and decode cost follow tokens; the name breaks ties so that equal inputs
    give equal choices.
    """
    return min(candidates, key=lambda c: (-c.headroom_tokens, -c.free_sequences, c.name), default=None)
