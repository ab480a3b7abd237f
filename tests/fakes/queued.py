"""Waiting requests for tests, and a queue that is nothing but a list, sorted whenever somebody asks."""

from dataclasses import dataclass, field

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


@dataclass(slots=True)
class InFlight:
    """A dispatched request; by class, whether it was dispatched before its tenant's last lift there."""

    tenant: str
    weight: float
    tokens: int
    stray: set[PriorityClass] = field(default_factory=set)


class PlainQueue:
    """The rules of `admission/queueing/__init__.py`, each followed by looking at everything."""

    def __init__(self) -> None:
        self.waiting: list[Waiting] = []
        self.in_flight: list[InFlight] = []
        self.counters: dict[PriorityClass, dict[str, float]] = {one: {} for one in PriorityClass}
        self.spare: dict[PriorityClass, dict[str, float]] = {one: {} for one in PriorityClass}

    def of_class(self, priority_class: PriorityClass) -> list[Waiting]:
        return [one for one in self.waiting if one.priority_class is priority_class]

    def lifted(self, tenant: str, priority_class: PriorityClass) -> tuple[float, float]:
        """Return a tenant's counter if it returned now, and the level."""
        counters = self.counters[priority_class]
        level = min((counters[one.tenant] for one in self.of_class(priority_class)), default=0.0)
        return max(counters.get(tenant, 0.0), level), level

    def lift(self, tenant: str, priority_class: PriorityClass) -> None:
        counter, level = self.lifted(tenant, priority_class)
        self.counters[priority_class][tenant] = counter
        self.spare[priority_class][tenant] = counter - level
        for one in self.in_flight:
            if one.tenant == tenant:
                one.stray.add(priority_class)

    def join(self, one: Waiting) -> None:
        if one.tenant not in {other.tenant for other in self.of_class(one.priority_class)}:
            self.lift(one.tenant, one.priority_class)
        self.waiting.append(one)

    def leave(self, one: Waiting) -> None:
        self.waiting.remove(one)
        if not self.of_class(one.priority_class):
            self.counters[one.priority_class].clear()

    def serve(self, tenant: str, weight: float, tokens: int) -> None:
        for priority_class, counters in self.counters.items():
            if self.of_class(priority_class):
                if tenant not in counters:
                    self.lift(tenant, priority_class)
                counters[tenant] += tokens / weight
        self.in_flight.append(InFlight(tenant, weight, tokens))

    def settle(self, one: InFlight, tokens: int) -> None:
        self.in_flight.remove(one)
        for priority_class, counters in self.counters.items():
            if one.tenant in counters:
                change = tokens / one.weight
                if priority_class in one.stray:
                    change = max(change, -self.spare[priority_class][one.tenant])
                    self.spare[priority_class][one.tenant] += change
                counters[one.tenant] += change

    def order(self, priority_class: PriorityClass, now: float, newcomer: Waiting | None = None) -> list[Waiting]:
        """Return the order of service; with a newcomer, as if it had joined."""
        counters = dict(self.counters[priority_class])
        left = self.of_class(priority_class)
        if newcomer is not None:
            if newcomer.tenant not in {one.tenant for one in left}:
                counters[newcomer.tenant] = self.lifted(newcomer.tenant, priority_class)[0]
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
