"""Waiting requests for tests, and a queue that is nothing but a list, sorted whenever somebody asks."""

from dataclasses import dataclass

from llmshed.admission.budget import Reservation
from llmshed.admission.lanes import Classification
from llmshed.admission.policy import AdmissionPolicy, LanePolicy
from llmshed.admission.queueing.waiting import Waiting
from llmshed.admission.request import Intent, Lane, PriorityClass, Request
from llmshed.admission.verdict import Decision, Verdict

RESIDENCE_SECONDS = 10.0


def waiting(
    key: int,
    tenant: str = "acme",
    joined_at: float = 0.0,
    input_tokens: int = 600,
    output_tokens: int = 400,
    priority_class: PriorityClass = PriorityClass.NORMAL,
    *,
    weight: float = 1.0,
    sequences: int = 1,
    residence_seconds: float = RESIDENCE_SECONDS,
    continuing: bool = False,
) -> Waiting:
    """Return a request that joined at `joined_at`, of 1,000 tokens unless said otherwise."""
    lane = LanePolicy(None, None, output_tokens, queue_requests=1_000, max_residence_seconds=residence_seconds)
    return Waiting(
        Request(key, tenant, "m", (input_tokens,), arrived_at=joined_at, continuing=continuing),
        Classification(Intent.INTERACTIVE, priority_class, Lane.INTERACTIVE),
        AdmissionPolicy({Lane.INTERACTIVE: lane}, (), {}),
        lane,
        Verdict(Decision.QUEUE),
        Reservation(input_tokens, output_tokens, 0, sequences),
        "r1",
        joined_at,
        joined_at + residence_seconds,
        weight,
    )


@dataclass(frozen=True, slots=True)
class InFlight:
    """A dispatched request."""

    tenant: str
    weight: float
    tokens: int
    dispatched_at: float


@dataclass(slots=True)
class Share:
    """A tenant's counter in one class, and what it was lifted to when."""

    counter: float
    level: float
    lifted_at: float
    given_back: float = 0.0  # by what was dispatched before the lift
    exceeded: float = 0.0  # the level at the lift


class PlainQueue:
    """The rules of `admission/queueing/__init__.py`, each followed by looking at everything."""

    def __init__(self) -> None:
        self.waiting: list[Waiting] = []
        self.in_flight: list[InFlight] = []
        self.shares: dict[PriorityClass, dict[str, Share]] = {one: {} for one in PriorityClass}

    def of_class(self, priority_class: PriorityClass) -> list[Waiting]:
        return [one for one in self.waiting if one.priority_class is priority_class]

    def lifted(self, tenant: str, priority_class: PriorityClass, now: float) -> Share:
        """Return a tenant's share if it returned now."""
        shares = self.shares[priority_class]
        level = min((shares[one.tenant].counter for one in self.of_class(priority_class)), default=0.0)
        counter = max(shares[tenant].counter, level) if tenant in shares else level
        return Share(counter, level, now, exceeded=counter - level)

    def join(self, one: Waiting, now: float) -> None:
        if one.tenant not in {other.tenant for other in self.of_class(one.priority_class)}:
            share = self.lifted(one.tenant, one.priority_class, now)
            self.shares[one.priority_class][one.tenant] = share
        self.waiting.append(one)

    def leave(self, one: Waiting) -> None:
        self.waiting.remove(one)
        if not self.of_class(one.priority_class):
            self.shares[one.priority_class].clear()

    def serve(self, tenant: str, weight: float, tokens: int, now: float) -> None:
        for priority_class, shares in self.shares.items():
            if self.of_class(priority_class):
                if tenant not in shares:
                    shares[tenant] = self.lifted(tenant, priority_class, now)
                shares[tenant].counter += tokens / weight
        self.in_flight.append(InFlight(tenant, weight, tokens, now))

    def settle(self, one: InFlight, unused_tokens: int) -> None:
        self.in_flight.remove(one)
        for shares in self.shares.values():
            share = shares.get(one.tenant)
            if share is not None:
                back = unused_tokens / one.weight
                if one.dispatched_at <= share.lifted_at:
                    back = min(back, share.exceeded - share.given_back)
                    share.given_back += back
                share.counter = max(share.level, share.counter - back)

    def order(self, priority_class: PriorityClass, now: float, newcomer: Waiting | None = None) -> list[Waiting]:
        """Return the order of service; with a newcomer, as if it had joined."""
        counters = {tenant: share.counter for tenant, share in self.shares[priority_class].items()}
        left = self.of_class(priority_class)
        if newcomer is not None:
            if newcomer.tenant not in {one.tenant for one in left}:
                counters[newcomer.tenant] = self.lifted(newcomer.tenant, priority_class, now).counter
            left.append(newcomer)
        order: list[Waiting] = []

        def within(one: Waiting) -> tuple[bool, float, int]:
            return (not one.continuing and one.ages_at > now, one.joined_at, one.key)

        while left:
            heads = [min((one for one in left if one.tenant == tenant), key=within) for tenant in tenants_of(left)]
            first = min(heads, key=lambda one: (counters[one.tenant], *within(one)))
            counters[first.tenant] += first.total_tokens / first.weight
            order.append(first)
            left.remove(first)
        return order

    def displaceable_by(self, priority_class: PriorityClass, tenant: str, weight: float, tokens: int) -> Waiting | None:
        lower = [one for one in self.waiting if one.priority_class.rank > priority_class.rank]
        if lower:
            lowest = max(one.priority_class.rank for one in lower)
            return newest([one for one in lower if one.priority_class.rank == lowest])
        backlogs: dict[str, list[Waiting]] = {}
        for one in self.of_class(priority_class):
            backlogs.setdefault(one.tenant, []).append(one)
        own = sum(one.total_tokens for one in backlogs.pop(tenant, []))
        if not backlogs:
            return None
        name = min(backlogs, key=lambda other: (-weighted(backlogs[other]), other))
        candidate = newest(backlogs[name])
        would = (own + max(tokens, candidate.total_tokens)) / weight
        return candidate if weighted(backlogs[name]) > would else None


def tenants_of(waiting: list[Waiting]) -> list[str]:
    """Return the tenants that wait, each once."""
    return sorted({one.tenant for one in waiting})


def newest(among: list[Waiting]) -> Waiting:
    """Return the newest new conversation, else the newest continuing one."""
    return max(among, key=lambda one: (not one.continuing, one.joined_at, one.key))


def weighted(backlog: list[Waiting]) -> float:
    """Return what one tenant waits with, for its weight."""
    return sum(one.total_tokens for one in backlog) / backlog[0].weight
