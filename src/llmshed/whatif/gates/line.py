"""Work that waits, in the order in which a policy serves it."""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from llmshed.whatif.gates.work import Work

Rank = tuple[int, ...]


class Line:
    """Waiting work by rank, the least first; each also with an instant at which its wait is over.

    What left is dropped from the heaps when it comes to their front, so that leaving costs nothing; the count is of
    those that wait.
    """

    def __init__(self, rank: Callable[[Work], Rank]) -> None:
        """Start empty; `rank` must differ between any two that wait, and not change."""
        self._rank = rank
        self._waiting: dict[int, tuple[Work, float]] = {}
        self._by_rank: list[tuple[Rank, int]] = []
        self._by_end: list[tuple[float, int]] = []

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def __contains__(self, key: int) -> bool:
        """Say whether a request waits here."""
        return key in self._waiting

    def __iter__(self) -> Iterator[Work]:
        """Yield what waits, in order of arrival here."""
        return (work for work, _ in self._waiting.values())

    def join(self, work: Work, until: float) -> None:
        """Let work wait, at most until then; infinity for no end."""
        self._waiting[work.key] = (work, until)
        heappush(self._by_rank, (self._rank(work), work.key))
        heappush(self._by_end, (until, work.key))

    def leave(self, key: int) -> Work:
        """Take work out, wherever it stands."""
        work, _ = self._waiting.pop(key)
        return work

    def first(self) -> Work | None:
        """Return what is served next; None when nothing waits."""
        while self._by_rank and self._by_rank[0][1] not in self._waiting:
            heappop(self._by_rank)
        return self._waiting[self._by_rank[0][1]][0] if self._by_rank else None

    def last(self) -> Work:
        """Return what is served after everything else that waits; looks at all of it. The line is not empty."""
        return max((work for work, _ in self._waiting.values()), key=self._rank)

    def next_end(self) -> float | None:
        """Return when the first of the waits is over; None when nothing waits."""
        while self._by_end and self._by_end[0][1] not in self._waiting:
            heappop(self._by_end)
        return self._by_end[0][0] if self._by_end else None

    def take_overdue(self, now: float) -> list[Work]:
        """Take out those whose wait is over by now, the earliest first."""
        overdue = []
        while (at := self.next_end()) is not None and at <= now:
            overdue.append(self.leave(self._by_end[0][1]))
        return overdue
