"""Whether a replica stood idle while somebody waited whom it could serve."""

from collections.abc import Iterator
from typing import NamedTuple

from llmshed.admission.request import Lane
from llmshed.whatif.monitors.seen import Account, Seen, Sight

SHORTEST_IDLE_SECONDS = 1.0
"""For how long nobody is blamed: a prefill window is let fill for a second, and estimates are made ten times in it."""


class _Want(NamedTuple):
    """A replica that is idle and wanted; `bulk_alone` says that nobody but bulk waits, which may be held back."""

    replica: str
    bulk_alone: bool


class IdleWatch:
    """Follows since when each replica is idle although a waiting request would fit it."""

    def __init__(self) -> None:
        """Begin with replicas that nobody waits for."""
        self._since: dict[_Want, float] = {}
        self._blamed: set[_Want] = set()

    def look(self, sight: Sight, now: float) -> list[str]:
        """Return a sentence for each replica that has stood idle for too long; once for each time that it does."""
        wants = {_Want(account.spec.name, bulk_alone): account for account, bulk_alone in _idle_and_wanted(sight)}
        self._since = {want: self._since.get(want, now) for want in wants}
        self._blamed &= set(wants)
        told = []
        for want, account in wants.items():
            since = self._since[want]
            if want not in self._blamed and now - since > _longest_seconds(sight, account, bulk_alone=want.bulk_alone):
                self._blamed.add(want)
                told.append(
                    f"{want.replica} has been idle since {since:g} s although a request waits that it could serve"
                )
        return told


def _idle_and_wanted(sight: Sight) -> Iterator[tuple[Account, bool]]:
    """Yield each replica that holds nothing while somebody waits in its pool whom it could hold."""
    for account in sight.accounts.values():
        if account.charges or not account.up:
            continue
        wanted = [seen for pool, seen in sight.waiting.values() if pool == account.spec.pool and _holds(account, seen)]
        if wanted:
            yield account, account.shared and all(seen.lane is Lane.BULK for seen in wanted)


def _holds(account: Account, seen: Seen) -> bool:
    budget = account.budget
    return seen.tokens <= budget.safe_budget_tokens and seen.sequences <= budget.hard_cap_sequences


def _longest_seconds(sight: Sight, account: Account, *, bulk_alone: bool) -> float:
    """Return how long it may stand idle: until its prefill window has been paid back for the longest prompt.

    Bulk beside interactive work that comes now and then may have to pay back at the rate of its floor.
    """
    rate = account.budget.prefill_tokens_per_second
    if rate is None:
        return SHORTEST_IDLE_SECONDS
    if bulk_alone:
        floor = account.budget.bulk.prefill_floor_ratio * rate
        return SHORTEST_IDLE_SECONDS + sight.largest_bulk_tokens / floor if floor else float("inf")
    return SHORTEST_IDLE_SECONDS + sight.largest_input_tokens / rate
