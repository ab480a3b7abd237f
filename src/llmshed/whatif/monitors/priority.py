"""Would a refused request have been served if nobody of a lower rank had been there; see the package's text."""

from collections.abc import Iterator

from llmshed.admission.request import Lane
from llmshed.whatif.monitors.floor import bulk_above_floor
from llmshed.whatif.monitors.room import fits
from llmshed.whatif.monitors.seen import Account, Seen, Sight


def could_be_cured(sight: Sight, asked: Seen, now: float) -> bool:
    """Say whether a request that was refused for room fits once lower ranks are away, and only then."""
    accounts = sight.accounts_for(asked)
    pools = {account.spec.pool for account in accounts}
    others = [seen for pool, seen in sight.waiting.values() if pool in pools and seen is not asked]
    lower = [seen for seen in others if seen.rank > asked.rank]
    newer = {key for account in accounts for key in _newer(sight, account, asked)}
    if not lower and not newer:
        return False
    if fits(accounts, (), others, asked):
        return False
    # A shadow reservation keeps its room: there is one on each replica, and which of them it is nobody tells.
    holders = _holders(sight, lower, accounts, now)
    ahead = [seen for seen in others if seen.rank <= asked.rank or seen in holders]
    unhindered = [account for account in accounts if not _prompts_keep_out(sight, account, asked, now)]
    return fits(unhindered, newer, ahead, asked)


def could_have_a_place(sight: Sight, asked: Seen, now: float) -> bool:
    """Say whether a request that found its lane's queue full has a place once lower ranks are out of it."""
    for pool, queued, kept in _queues(sight, asked, now):
        accounts = [one for one in sight.accounts.values() if one.up and one.spec.pool == pool]
        if not _has_place(sight, accounts, queued, asked) and _has_place(sight, accounts, kept, asked):
            return True
    return False


def lower_waits(sight: Sight, asked: Seen, now: float) -> bool:
    """Say whether a request gave its place in a queue away while another of a lower rank kept its own."""
    return any(len(kept) < len(queued) for _, queued, kept in _queues(sight, asked, now))


def _queues(sight: Sight, asked: Seen, now: float) -> Iterator[tuple[str, list[Seen], list[Seen]]]:
    """Yield for each pool who else waits in the request's lane, and who of them is not of a lower rank."""
    accounts = sight.accounts_for(asked)
    for name in dict.fromkeys(account.spec.pool for account in accounts):
        queued = [
            seen
            for pool, seen in sight.waiting.values()
            if pool == name and seen.lane is asked.lane and seen is not asked
        ]
        lower = [seen for seen in queued if seen.rank > asked.rank]
        holders = _holders(sight, lower, [one for one in accounts if one.spec.pool == name], now)
        yield name, queued, [seen for seen in queued if seen.rank <= asked.rank or seen in holders]


def _prompts_keep_out(sight: Sight, account: Account, asked: Seen, now: float) -> bool:
    share_seconds = sight.policy.lanes[asked.lane].engine_share_seconds
    beside = account.shared and asked.lane is Lane.BULK
    return account.prompts.keep_out(asked.input_tokens, account.budget, share_seconds, now, beside=beside)


def _newer(sight: Sight, account: Account, asked: Seen) -> set[int]:
    """Return what runs of lower ranks and was dispatched since the request came, apart from what is excepted."""
    above = {one.key for one in bulk_above_floor(account, asked, sight.largest_bulk_tokens)}
    return {
        key
        for key, seen in account.charges.items()
        if seen.rank > asked.rank
        and (seen.dispatched_order or 0) > asked.order
        and not seen.aged
        and (seen.lane is not Lane.BULK or key in above)
    }


def _holders(sight: Sight, lower: list[Seen], accounts: list[Account], now: float) -> list[Seen]:
    """Return the largest of those that may hold a shadow reservation, as many as there are replicas."""
    shared = any(account.shared for account in accounts)
    may = [seen for seen in lower if (shared and seen.lane is Lane.BULK) or sight.is_aged(seen, now)]
    return sorted(may, key=lambda seen: seen.tokens)[-len(accounts) :]


def _has_place(sight: Sight, accounts: list[Account], queued: list[Seen], asked: Seen) -> bool:
    lane = sight.policy.lanes[asked.lane]
    most_tokens = lane.queue_tokens
    if most_tokens is None:
        most_tokens = sum(account.budget.safe_budget_tokens for account in accounts)
    return len(queued) < lane.queue_requests and sum(seen.tokens for seen in queued) + asked.tokens <= most_tokens
