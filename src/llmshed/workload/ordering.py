"""Logged requests by their arrival: a log has them in the order in which they ended.

A line is written when its request ends, so whoever arrived earlier and ends later stands further down. Lines are held
until the latest end seen is an hour past their arrival: requests last no longer, so nobody who arrived before them can
follow. Memory is bounded by the requests of an hour, and by `MOST_HELD` of them.
"""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush, heappushpop
from typing import TYPE_CHECKING

from llmshed.workload.logged import LoggedRequest

if TYPE_CHECKING:
    from collections import Counter

HELD_SECONDS = 3600.0
"""Requests that last longer are left out."""
MOST_HELD = 500_000
"""Requests held at most: some 300 MB. Above, the earliest is let go, and one that comes before it is an error."""


def by_arrival(
    requests: Iterable[LoggedRequest], skipped: "Counter[str]", most_held: int = MOST_HELD
) -> Iterator[LoggedRequest]:
    """Yield requests in order of arrival, those of one instant by their line.

    A request that comes too late for its place is yielded all the same; whoever needs the order must look.

    Args:
        requests: in about the order in which they ended.
        skipped: where those that are left out are counted.
        most_held: how many are held at most, at least 1.
    """
    held: list[tuple[float, int, LoggedRequest]] = []
    latest_end = 0.0
    for request in requests:
        if request.total_seconds > HELD_SECONDS:
            skipped[f"a request of more than {HELD_SECONDS:g} s"] += 1
            continue
        latest_end = max(latest_end, request.ended_seconds)
        entry = (request.time_seconds, request.line, request)
        if len(held) >= most_held:
            yield heappushpop(held, entry)[2]
        else:
            heappush(held, entry)
        while held and held[0][0] < latest_end - HELD_SECONDS:
            yield heappop(held)[2]
    while held:
        yield heappop(held)[2]
