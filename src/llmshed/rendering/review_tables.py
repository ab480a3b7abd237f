"""A review as tables, for a terminal and a page alike: what is not known is a dash."""

from llmshed.rendering.figures import count, duration, number, share
from llmshed.rendering.page import Table
from llmshed.review.figures import PoolUse, Refusals, Review

_ESTIMATE = "Tokens are an estimate: refused requests times the mean request of their lane."


def review_tables(review: Review) -> tuple[Table, ...]:
    """Return what was refused, served, waited for, used and reserved; a table without rows is left out."""
    tables = (
        _refused("Refused, by reason", review.refused),
        _refused("Would have been refused (observe mode)", review.would_refuse),
        Table(
            "Served, by lane",
            ("", "requests", "met objectives", "TTFT p50", "TTFT p95", "TPOT p95", "whole p95"),
            tuple((one.lane, count(one.requests), share(one.good), *map(_seconds, one[3:])) for one in review.served),
            "From arrival at the gateway, waits included.",
        ),
        Table(
            "Queues: the longest waits, and starvation",
            ("", "oldest", "p99", "over a minute"),
            tuple(
                (
                    f"{one.lane}, {one.pool}",
                    _seconds(one.oldest_seconds),
                    _seconds(one.residence_p99_seconds),
                    share(one.starving),
                )
                for one in review.waiting
            ),
            "The last column is the share of the time in which somebody had waited for more than a minute.",
        ),
        Table(
            "Pools: how they were used",
            ("", "lanes", "utilised", "at most", "idle", "sequences", "at most"),
            tuple(map(_pool, review.pools)),
            "Reserved tokens over the safe budget; idle is the share of the time in which nothing ran.",
        ),
        Table(
            "Tokens reserved and used, a request in the mean",
            ("", "prompt", "prompt p95", "asked output", "asked p95", "made", "made p95", "made of asked"),
            tuple((one.lane, *map(count, one[1:]), share(one.used_share)) for one in review.sizes),
        ),
    )
    return tuple(table for table in tables if table.rows)


def notes(review: Review, whole_ratio: float) -> tuple[str, ...]:
    """Return what a reader should know of the figures, one sentence each."""
    told = []
    if review.known_share is not None and review.known_share < whole_ratio:
        told.append(
            f"Data are there for {share(review.known_share)} of the {duration(review.span_seconds)} alone: counts and"
            " shares of the time are of that part."
        )
    if review.unread:
        told.append(f"Not told: {', '.join(f'{name} ({why})' for name, why in review.unread.items())}.")
    return tuple(told)


def _refused(title: str, rows: tuple[Refusals, ...]) -> Table:
    cells = tuple(
        (f"{one.lane}, {one.reason}", count(one.requests), share(one.share), count(one.tokens)) for one in rows
    )
    return Table(title, ("", "requests", "of the lane", "tokens (estimate)"), cells, _ESTIMATE)


def _pool(one: PoolUse) -> tuple[str, ...]:
    lanes = "-" if not one.lanes else f"{one.lanes[0]} alone" if one.dedicated else ", ".join(one.lanes)
    shares = (share(one.utilised), share(one.utilised_most), share(one.idle))
    return (one.pool, lanes, *shares, number(one.running_mean), count(one.running_most))


def _seconds(value: float | None) -> str:
    return "-" if value is None else duration(value)
