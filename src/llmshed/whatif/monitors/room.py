"""Would a request fit, if only some others were there: the counterfactual that a refusal is held against."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import inf

from llmshed.admission.request import Lane
from llmshed.whatif.monitors.seen import Account, Seen


@dataclass(slots=True)
class Room:
    """What is free on one replica; `bulk_tokens` is what bulk may still take of it."""

    tokens: int
    sequences: int
    bulk_tokens: float

    def takes(self, seen: Seen) -> bool:
        """Say whether a request fits."""
        within_share = seen.lane is not Lane.BULK or seen.tokens <= self.bulk_tokens
        return within_share and seen.tokens <= self.tokens and seen.sequences <= self.sequences

    def take(self, seen: Seen) -> None:
        """Let a request in, whether or not it fits."""
        self.tokens -= seen.tokens
        self.sequences -= seen.sequences
        if seen.lane is Lane.BULK:
            self.bulk_tokens -= seen.tokens


def fits(accounts: Iterable[Account], without: Collection[int], ahead: Iterable[Seen], asked: Seen) -> bool:
    """Say whether a request would fit somewhere at once.

    Args:
        accounts: the replicas that may take it.
        without: charged requests that are taken to be away.
        ahead: waiting requests that go before it, in their order: each is put where most tokens are free of the rooms
            that take it, since a gate does not tell where it would go. Where none takes it, one of a better rank keeps
            all rooms, since nobody passes it; any other one that where most tokens are free.
        asked: the request.
    """
    rooms = [_room(account, without) for account in accounts]
    for one in ahead:
        taking = [room for room in rooms if room.takes(one)]
        if not taking and one.rank < asked.rank:
            return False
        if rooms:
            max(taking or rooms, key=lambda room: room.tokens).take(one)
    return any(room.takes(asked) for room in rooms)


def _room(account: Account, without: Collection[int]) -> Room:
    """Return what is free; one bulk request may always run beside no other, however large."""
    charges = [seen for key, seen in account.charges.items() if key not in without]
    budget = account.budget
    held = sum(seen.tokens for seen in charges if seen.lane is Lane.BULK)
    share = budget.bulk.reserved_max_ratio * budget.safe_budget_tokens - held if account.shared and held else inf
    return Room(
        tokens=budget.safe_budget_tokens - sum(seen.tokens for seen in charges),
        sequences=budget.hard_cap_sequences - sum(seen.sequences for seen in charges),
        bulk_tokens=share,
    )
