"""Everything that waits in one pool and lane."""

import math
from collections.abc import Iterator

from llmshed.admission.queueing.class_line import ClassLine
from llmshed.admission.queueing.tenant_line import Ahead
from llmshed.admission.queueing.timeline import Timeline
from llmshed.admission.queueing.waiting import Waiting
from llmshed.admission.request import PriorityClass


class LaneQueue:
    """Inside by class, then weighted fair between tenants, inside a tenant continuing ones first, then by arrival.

    The times that methods take never go back.

    Attributes:
        tokens: the reserved tokens that wait.
    """

    __slots__ = ("_ages", "_below", "_classes", "_expiries", "_now", "_waiting", "tokens")

    def __init__(self) -> None:
        """Start empty."""
        self.tokens = 0
        self._waiting: dict[int, Waiting] = {}
        self._classes = {priority_class: ClassLine() for priority_class in PriorityClass}
        lowest_first = sorted(PriorityClass, key=lambda priority_class: -priority_class.rank)
        self._below = {
            own: tuple(self._classes[other] for other in lowest_first if other.rank > own.rank) for own in PriorityClass
        }
        self._expiries = Timeline()
        self._now = 0.0  # as told last
        self._ages = Timeline()  # of new conversations that have not aged yet

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def __contains__(self, key: int) -> bool:
        """Say whether a request waits here."""
        return key in self._waiting

    def __iter__(self) -> Iterator[Waiting]:
        """Yield all who wait, in the order in which they joined; the queue may not change meanwhile."""
        return iter(self._waiting.values())

    def requests_of(self, priority_class: PriorityClass) -> int:
        """Return how many wait in a class."""
        return len(self._classes[priority_class])

    def tokens_of(self, priority_class: PriorityClass) -> int:
        """Return the reserved tokens that wait in a class."""
        return self._classes[priority_class].tokens

    def input_tokens_of(self, priority_class: PriorityClass) -> int:
        """Return the prompt tokens that wait in a class."""
        return self._classes[priority_class].input_tokens

    def join(self, waiting: Waiting, now: float) -> None:
        """Take a request in at the place that its `joined_at` gives it; one that waits already is a ValueError."""
        if waiting.key in self._waiting:
            raise ValueError(f"request {waiting.key} waits already")
        self._waiting[waiting.key] = waiting
        self.tokens += waiting.total_tokens
        self._expiries.add(waiting.key, waiting.expires_at)
        if not waiting.continuing:
            self._ages.add(waiting.key, waiting.ages_at)
        self._classes[waiting.priority_class].join(waiting, now)
        self._age(now)

    def leave(self, key: int) -> Waiting:
        """Take a request out that waits here, for whatever reason."""
        waiting = self._waiting.pop(key)
        self.tokens -= waiting.total_tokens
        self._expiries.discard(key)
        self._ages.discard(key)
        self._classes[waiting.priority_class].leave(waiting)
        return waiting

    def head(self, priority_class: PriorityClass, now: float) -> Waiting | None:
        """Return whom service takes next of a class; None when nobody waits in it."""
        self._age(now)
        return self._classes[priority_class].head

    def in_order(self, priority_class: PriorityClass, now: float) -> Iterator[Waiting]:
        """Return the requests of a class in the order of service, found one by one as they are asked for.

        The queue may not change before the last is taken.
        """
        self._age(now)
        return self._classes[priority_class].in_order()

    def served(self, tenant: str, weight: float, tokens: int) -> None:
        """Count the reservation of a dispatched request, one that never waited too; `weight` > 0.

        It counts in every class: a tenant has one share of a lane, however it spreads its work over classes.
        """
        for line in self._classes.values():
            line.charge(tenant, weight, tokens, self._now)

    def settle(self, tenant: str, weight: float, tokens: int, dispatched_at: float = math.inf) -> None:
        """Correct a count to real usage when the request ends; `tokens` is real less reserved.

        With the instant of its dispatch, what was dispatched before the tenant's present wait gives back nothing
        against those that wait now.
        """
        for line in self._classes.values():
            line.settle(tenant, weight, tokens, dispatched_at)

    def ahead_of(
        self,
        tenant: str,
        weight: float,
        priority_class: PriorityClass,
        *,
        continuing: bool,
    ) -> Ahead:
        """Return the work of its own class that would be served before a newcomer; see `ClassLine.ahead_of`."""
        return self._classes[priority_class].ahead_of(tenant, weight, continuing=continuing)

    def take_expired(self, now: float) -> list[Waiting]:
        """Take out those whose time is over, and return them in the order of their expiry."""
        self._now = now
        if not self._waiting:
            return []
        self._age(now)
        return [self.leave(key) for key in self._expiries.take_due(now)]

    def next_expiry(self) -> float | None:
        """Return when the next one expires; None when nobody waits."""
        return self._expiries.first()

    def displaceable_by(
        self, priority_class: PriorityClass, tenant: str, weight: float, tokens: int = 0
    ) -> Waiting | None:
        """Return whom a newcomer displaces when the queue is full; None when it is the newcomer who has to go.

        First the newest of the lowest class below its own, new conversations before continuing ones. Else, in its own
        class, the newest of the tenant that waits with most for its weight; `ClassLine.beyond_share` says when, and
        what it takes `tokens`, the newcomer's reservation, for.
        """
        for line in self._below[priority_class]:
            if line:
                return line.first_to_displace
        return self._classes[priority_class].beyond_share(tenant, weight, tokens)

    def oldest_joined_at(self) -> float | None:
        """Return when the one that waits longest joined; None when nobody waits."""
        oldest = [row.oldest for line in self._classes.values() for row in (line.new, line.continuing)]
        return min((waiting.joined_at for waiting in oldest if waiting is not None), default=None)

    def check(self) -> list[str]:
        """Return the invariants that do not hold: every sum and order equals the recount, and all are timed."""
        wrong = [*self._expiries.check(), *self._ages.check()]
        for priority_class, line in self._classes.items():
            wrong += [f"{priority_class}: {sentence}" for sentence in line.check()]
            for waiting in line:
                if self._waiting.get(waiting.key) is not waiting or waiting.priority_class is not priority_class:
                    wrong.append(f"request {waiting.key} stands in {priority_class} and should not")
        if sum(map(len, self._classes.values())) != len(self._waiting):
            wrong.append("a request stands in no class")
        if sum(waiting.total_tokens for waiting in self) != self.tokens:
            wrong.append(f"{self.tokens} tokens are said to wait")
        if len(self._expiries) != len(self._waiting):
            wrong.append(f"{len(self._waiting)} wait, {len(self._expiries)} are timed")
        return wrong

    def _age(self, now: float) -> None:
        self._now = now
        for key in self._ages.take_due(now):
            waiting = self._waiting[key]
            self._classes[waiting.priority_class].age(waiting)
