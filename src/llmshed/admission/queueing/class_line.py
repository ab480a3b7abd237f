"""What waits in one priority class of a lane: weighted fair between tenants, by their virtual token counters."""

import math
from collections.abc import Iterator
from heapq import heappop, heappush

from llmshed.admission.queueing.fairness import ServedTokens
from llmshed.admission.queueing.ranking import Ranking, RankKey
from llmshed.admission.queueing.row import Row
from llmshed.admission.queueing.tenant_line import Ahead, TenantLine
from llmshed.admission.queueing.waiting import Waiting

NOTHING = Ahead(0, 0, 0)


class ClassLine:
    """Tenants with their lines, ranked twice: by whom service takes next, and by who waits with most for its weight.

    Attributes:
        new, continuing: all that waits, by kind and arrival.
    """

    __slots__ = (
        "_backlogs",
        "_counters",
        "_largest_tokens",
        "_order",
        "_tenants",
        "_unranked",
        "_weights",
        "continuing",
        "new",
    )

    def __init__(self) -> None:
        """Start empty."""
        self.new = Row()
        self.continuing = Row()
        self._tenants: dict[str, TenantLine] = {}
        self._counters = ServedTokens()
        self._order = Ranking()
        self._backlogs = Ranking()
        self._unranked: set[str] = set()  # tenants whose rank among the backlogs waits until somebody asks for it
        self._weights = 0.0
        self._largest_tokens = 0  # sum over tenants of each one's largest reservation

    def __len__(self) -> int:
        """Return how many wait in this class."""
        return len(self.new) + len(self.continuing)

    def __iter__(self) -> Iterator[Waiting]:
        """Yield all that waits in this class, new conversations first, each kind by arrival."""
        yield from self.new
        yield from self.continuing

    @property
    def tokens(self) -> int:
        """Return the reserved tokens that wait in this class."""
        return self.new.tokens + self.continuing.tokens

    @property
    def input_tokens(self) -> int:
        """Return their prompt tokens."""
        return self.new.input_tokens + self.continuing.input_tokens

    @property
    def sequences(self) -> int:
        """Return the seats that they will take."""
        return self.new.sequences + self.continuing.sequences

    def join(self, waiting: Waiting, now: float) -> None:
        """Take a request in."""
        tenant, weight = waiting.tenant, waiting.weight
        line = self._tenants.get(tenant)
        if line is None:
            self._lift(tenant, now)
            line = self._tenants[tenant] = TenantLine(weight)
            self._weights += weight
        former_weight, former_largest_tokens = line.weight, line.largest_tokens
        line.weight = weight
        line.add(waiting)
        self._weights += weight - former_weight
        self._largest_tokens += line.largest_tokens - former_largest_tokens
        (self.continuing if waiting.continuing else self.new).add(waiting)
        self._unranked.add(tenant)
        if line.head is waiting:
            self._rank(tenant, line, waiting)

    def leave(self, waiting: Waiting) -> None:
        """Take a request out that waits here."""
        tenant = waiting.tenant
        line = self._tenants[tenant]
        was_head, former_largest_tokens = line.head is waiting, line.largest_tokens
        line.remove(waiting)
        self._largest_tokens += line.largest_tokens - former_largest_tokens
        (self.continuing if waiting.continuing else self.new).remove(waiting.key)
        head = line.head
        if head is None:
            self._dismiss(tenant, line)
            return
        self._unranked.add(tenant)
        if was_head:
            self._rank(tenant, line, head)

    def age(self, waiting: Waiting) -> None:
        """Put a new conversation that waits here on the level of continuing ones."""
        line = self._tenants[waiting.tenant]
        line.age(waiting)
        if line.head is waiting:
            self._rank(waiting.tenant, line, waiting)

    def charge(self, tenant: str, weight: float, tokens: int, now: float) -> None:
        """Count tokens as served to a tenant, whether or not it waits here; nothing counts while nobody does."""
        if not self._tenants:
            return
        counters, rebased = self._counters, self._counters.rebased
        if tenant not in counters:
            self._lift(tenant, now)
            counters.rest(tenant)
        counters.charge(tenant, weight, tokens)
        for name in (tenant,) if counters.rebased == rebased else tuple(self._tenants):
            self._rank_anew(name)

    def settle(self, tenant: str, weight: float, tokens: int, dispatched_at: float) -> None:
        """Correct what was counted to real usage."""
        self._counters.settle(tenant, weight, tokens, dispatched_at)
        self._rank_anew(tenant)

    @property
    def head(self) -> Waiting | None:
        """Return whom service takes next; None when nobody waits."""
        first = self._order.first()
        return None if first is None else self._tenants[first[1]].head

    def in_order(self) -> Iterator[Waiting]:
        """Yield in the order of service: each as if those before it had been served and charged.

        Tenants come out of the ranking one by one as their counters are reached, and stand from then on in a heap by
        what their counters would be, so the first k cost O(k log k) whatever waits behind them.
        """
        entries = iter(self._order)
        entry = next(entries, None)
        begun: list[tuple[RankKey, str, Waiting, Iterator[Waiting], int]] = []
        while begun or entry is not None:
            if entry is not None and (not begun or entry < begun[0][:2]):
                tenant = entry[1]
                rest, taken_tokens = iter(self._tenants[tenant]), 0
                waiting = next(rest)
                entry = next(entries, None)
            else:
                _, tenant, waiting, rest, taken_tokens = heappop(begun)
            yield waiting
            following = next(rest, None)
            if following is not None:
                taken_tokens += waiting.total_tokens
                key = self._key(tenant, self._tenants[tenant], following, ahead_tokens=taken_tokens)
                heappush(begun, (key, tenant, following, rest, taken_tokens))

    def ahead_of(self, tenant: str, weight: float, *, continuing: bool) -> Ahead:
        """Return what would be served before a newcomer: tokens as an upper bound, the rest in proportion.

        With u the virtual counter at which the newcomer's turn comes, each other tenant is served until its counter
        passes u: at most w (u - its counter) tokens and the one request that passes it. Summed over the others with
        the least of their counters for all, and bounded by what they have.
        """
        line = self._tenants.get(tenant)
        own = NOTHING if line is None else line.ahead_of(continuing=continuing)
        first = self._order.first(other_than=tenant)
        if first is None:
            return own
        least = first[0][0]
        counter = self._counters.of(tenant)
        turn = (counter if line is not None else max(counter, least)) + own.tokens / weight
        if turn < least:
            return own
        # A continuing newcomer passes some of its own tenant's, which are not ahead and not the others' either.
        mine = NOTHING if line is None else line.ahead_of(continuing=False)
        have_tokens = self.tokens - mine.tokens
        weights = self._weights - (0.0 if line is None else line.weight)
        passing_tokens = self._largest_tokens - (0 if line is None else line.largest_tokens)
        tokens = min(have_tokens, math.ceil((turn - least) * weights) + passing_tokens)
        return Ahead(
            own.tokens + tokens,
            own.input_tokens - (mine.input_tokens - self.input_tokens) * tokens // have_tokens,
            own.sequences - (mine.sequences - self.sequences) * tokens // have_tokens,
        )

    @property
    def first_to_displace(self) -> Waiting | None:
        """Return the newest new conversation, else the newest continuing one; None when nobody waits."""
        return self.new.newest or self.continuing.newest

    def beyond_share(self, tenant: str, weight: float, tokens: int) -> Waiting | None:
        """Return whom a newcomer of this class displaces, if one tenant waits with more than the newcomer's then would.

        That is the newest of the tenant with most waiting tokens for its weight. The newcomer counts with its tokens,
        and at least with those of the place that it would take, so that two tenants never displace one another in turn.
        """
        for name in self._unranked:
            self._backlogs.place(name, (-self._tenants[name].weighted_tokens,))
        self._unranked.clear()
        first = self._backlogs.first(other_than=tenant)
        if first is None:
            return None
        other = self._tenants[first[1]]
        candidate = other.first_to_displace
        line = self._tenants.get(tenant)
        if candidate is None:
            return None
        would_wait_tokens = (0 if line is None else line.tokens) + max(tokens, candidate.total_tokens)
        return candidate if other.weighted_tokens > would_wait_tokens / weight else None

    def check(self) -> list[str]:
        """Return the invariants that do not hold: each request in one place, sums, ranks."""
        wrong = [*self.new.check(), *self.continuing.check(), *self._order.check(), *self._backlogs.check()]
        for line in self._tenants.values():
            wrong += line.check()
        keys = sorted(waiting.key for waiting in self)
        if sorted(waiting.key for line in self._tenants.values() for waiting in line) != keys:
            wrong.append("the tenants' lines and the class's rows disagree")
        for tenant, line in self._tenants.items():
            head = line.head
            if head is None:
                wrong.append(f"tenant {tenant} waits with nothing")
            elif self._order.key_of(tenant) != self._key(tenant, line, head):
                wrong.append(f"tenant {tenant} is out of its rank in the order of service")
            if tenant not in self._unranked and self._backlogs.key_of(tenant) != (-line.weighted_tokens,):
                wrong.append(f"tenant {tenant} is out of its rank by what it waits with")
        if len(self._order) != len(self._tenants) or len(self._backlogs) > len(self._tenants):
            wrong.append("a tenant is ranked that does not wait")
        if not math.isclose(self._weights, sum(line.weight for line in self._tenants.values()), abs_tol=1e-6):
            wrong.append(f"the weights are said to sum to {self._weights}")
        if self._largest_tokens != sum(line.largest_tokens for line in self._tenants.values()):
            wrong.append(f"the largest reservations are said to sum to {self._largest_tokens}")
        return wrong

    def _lift(self, tenant: str, now: float) -> None:
        first = self._order.first()
        self._counters.lift(tenant, () if first is None else (first[1],), now)

    def _dismiss(self, tenant: str, line: TenantLine) -> None:
        """Take out a tenant that waits with nothing any more; after the last one all start level again."""
        del self._tenants[tenant]
        self._order.discard(tenant)
        self._unranked.discard(tenant)
        self._backlogs.discard(tenant)
        if self._tenants:
            self._weights -= line.weight
            self._counters.rest(tenant)
        else:
            self._weights = 0.0  # sums of floats drift; now the sum is known
            self._counters.clear()

    def _rank_anew(self, tenant: str) -> None:
        line = self._tenants.get(tenant)
        if line is not None and line.head is not None:
            self._rank(tenant, line, line.head)

    def _rank(self, tenant: str, line: TenantLine, head: Waiting) -> None:
        self._order.place(tenant, self._key(tenant, line, head))

    def _key(self, tenant: str, line: TenantLine, head: Waiting, ahead_tokens: int = 0) -> RankKey:
        """Return where a tenant with that head stands once so many tokens of its own were served before."""
        counter = self._counters.of(tenant) + ahead_tokens / line.weight
        return (counter, head.key in line.fresh, head.joined_at, head.key)
