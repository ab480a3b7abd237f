"""What one tenant waits with in one class: continuing conversations first, then first come, first served."""

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from llmshed.admission.queueing.row import Row
from llmshed.admission.queueing.timeline import Timeline
from llmshed.admission.queueing.waiting import Waiting


class Ahead(NamedTuple):
    """Queued work that would be served before somebody."""

    tokens: int
    input_tokens: int
    sequences: int


class TenantLine:
    """Three rows, each by arrival: continuing, new ones that have aged to their level, and new ones that have not.

    The first two are served as one by arrival, before the third.

    Attributes:
        weight: the tenant's weight, as its last request told it.
        head: whom service takes next; None when nobody waits.
        largest_tokens: the largest reservation that waits here.
    """

    __slots__ = ("_sizes", "aged", "continuing", "fresh", "head", "largest_tokens", "weight")

    def __init__(self, weight: float) -> None:
        """Start empty."""
        self.weight = weight
        self.continuing = Row()
        self.aged = Row()
        self.fresh = Row()
        self.head: Waiting | None = None
        self.largest_tokens = 0
        self._sizes = Timeline()  # reservations negated, so that the largest comes first

    def __len__(self) -> int:
        """Return how many wait here."""
        return len(self.continuing) + len(self.aged) + len(self.fresh)

    def __iter__(self) -> Iterator[Waiting]:
        """Yield in the order of service, lazily."""
        if self.aged:
            yield from heapq.merge(self.continuing, self.aged, key=lambda waiting: waiting.arrival)
        else:
            yield from self.continuing
        yield from self.fresh

    def add(self, waiting: Waiting) -> None:
        """Take a request in; a new conversation counts as not aged until `age` says so."""
        (self.continuing if waiting.continuing else self.fresh).add(waiting)
        self._sizes.add(waiting.key, -waiting.total_tokens)
        self.largest_tokens = max(self.largest_tokens, waiting.total_tokens)
        head = self.head
        if head is None or waiting.continuing or waiting.arrival < head.arrival:
            self.head = self._first()

    def remove(self, waiting: Waiting) -> None:
        """Take a request out that waits here."""
        key = waiting.key
        row = self.continuing if waiting.continuing else self.fresh if key in self.fresh else self.aged
        row.remove(key)
        self._sizes.discard(key)
        if waiting.total_tokens == self.largest_tokens:
            self.largest_tokens = -int(self._sizes.first() or 0)
        if waiting is self.head:
            self.head = self._first()

    def age(self, waiting: Waiting) -> None:
        """Put a new conversation on the level of continuing ones."""
        self.fresh.remove(waiting.key)
        self.aged.add(waiting)
        self.head = self._first()

    @property
    def tokens(self) -> int:
        """Return the reserved tokens that wait here."""
        return self.continuing.tokens + self.aged.tokens + self.fresh.tokens

    @property
    def weighted_tokens(self) -> float:
        """Return the reserved tokens that wait here per unit of weight."""
        return self.tokens / self.weight

    @property
    def first_to_displace(self) -> Waiting | None:
        """Return whom to displace first: the newest new conversation, else the newest continuing one."""
        fresh, aged = self.fresh.newest, self.aged.newest
        if fresh is None or aged is None:
            return fresh or aged or self.continuing.newest
        return fresh if fresh.arrival > aged.arrival else aged

    def ahead_of(self, *, continuing: bool) -> Ahead:
        """Return what a newcomer of this tenant stands behind; a new conversation stands behind all."""
        behind, aged, fresh = self.continuing, self.aged, self.fresh
        tokens = behind.tokens + aged.tokens
        input_tokens = behind.input_tokens + aged.input_tokens
        sequences = behind.sequences + aged.sequences
        if continuing:
            return Ahead(tokens, input_tokens, sequences)
        return Ahead(tokens + fresh.tokens, input_tokens + fresh.input_tokens, sequences + fresh.sequences)

    def check(self) -> list[str]:
        """Return the invariants that do not hold: rows and their kinds, and the sizes."""
        wrong = [*self.continuing.check(), *self.aged.check(), *self.fresh.check(), *self._sizes.check()]
        wrong += [f"request {w.key} is in the continuing row" for w in self.continuing if not w.continuing]
        wrong += [f"request {w.key} is in a row of new ones" for w in (*self.aged, *self.fresh) if w.continuing]
        if self.largest_tokens != max((waiting.total_tokens for waiting in self), default=0):
            wrong.append(f"largest_tokens is {self.largest_tokens}")
        if self.head is not next(iter(self), None):
            wrong.append("the head is not the first in the order of service")
        return wrong

    def _first(self) -> Waiting | None:
        continuing, aged = self.continuing.oldest, self.aged.oldest
        if continuing is None or aged is None:
            return continuing or aged or self.fresh.oldest
        return continuing if continuing.arrival < aged.arrival else aged
