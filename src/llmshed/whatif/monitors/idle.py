"""Whether a replica stood idle while somebody waited whom it could serve."""

from llmshed.whatif.monitors.seen import Account, Sight

SHORTEST_IDLE_SECONDS = 1.0
"""For how long nobody is blamed: a prefill window is let fill for a second, and estimates are made ten times in it."""


class IdleWatch:
    """Follows since when each replica is idle although a waiting request would fit it."""

    def __init__(self) -> None:
        """Begin with replicas that nobody waits for."""
        self._since: dict[str, float] = {}
        self._blamed: set[str] = set()

    def look(self, sight: Sight, now: float) -> list[str]:
        """Return a sentence for each replica that has stood idle for too long; once for each time that it does."""
        told = []
        for name, account in sight.accounts.items():
            if account.charges or not _is_wanted(sight, account):
                self._since.pop(name, None)
                self._blamed.discard(name)
                continue
            since = self._since.setdefault(name, now)
            if now - since > _longest_seconds(sight, account) and name not in self._blamed:
                self._blamed.add(name)
                told.append(f"{name} has been idle since {since:g} s although a request waits that it could serve")
        return told


def _is_wanted(sight: Sight, account: Account) -> bool:
    """Say whether anybody waits in its pool whom it could hold when it is empty, as it is."""
    budget = account.budget
    return account.up and any(
        pool == account.spec.pool
        and seen.tokens <= budget.safe_budget_tokens
        and seen.sequences <= budget.hard_cap_sequences
        for pool, seen in sight.waiting.values()
    )


def _longest_seconds(sight: Sight, account: Account) -> float:
    """Return how long it may stand idle: its prefill window may have to be paid back for the longest prompt."""
    rate = account.budget.prefill_tokens_per_second
    return SHORTEST_IDLE_SECONDS + (0.0 if rate is None else sight.largest_input_tokens / rate)
