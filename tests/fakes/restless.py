"""A controller before stub engines of fixed times; clients leave, engines fail, replicas come and go.

Every word of it is held against a model's own books, and all invariants are asked for at every look.
"""

import heapq
from enum import Enum
from random import Random

from fakes.controller_books import RESIDENCE_SECONDS, Books
from fakes.door import policy, queueing_lanes, request, spec
from llmshed.admission.actions import Action, Dispatch, Evict, Refuse
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import (
    Arrived,
    BudgetChanged,
    Cancelled,
    Event,
    Failed,
    Finished,
    FirstToken,
    NotSent,
    ReplicaDown,
    ReplicaUp,
    Tick,
)
from llmshed.admission.policy import ReplicaBudget, TenantPolicy
from llmshed.admission.request import Intent, Lane, PriorityClass

PREFILL_TOKENS_PER_SECOND = 40_000.0
DECODE_SECONDS = 0.005
EVENTS_BETWEEN_LOOKS = 500
REPLICAS = ("r1", "r2", "r3")
TENANTS = {
    "acme": TenantPolicy("acme", max_concurrent_requests=80, max_reserved_tokens=400_000),
    "bolt": TenantPolicy("bolt", weight=3.0, top_class=PriorityClass.HIGH),
    "core": TenantPolicy("core"),
}


class Mood(Enum):
    """How many requests come, as a multiple of about what three replicas can serve."""

    CALM = 0.5
    BUSY = 1.2
    STORM = 4.0


class Restless(Books):
    """One run by one seed.

    Two chances say how restless: that an arrival brings trouble to a replica, and that a replica never reads what it is
    sent.
    """

    def __init__(self, seed: int, trouble_chance: float = 0.002, unread_chance: float = 0.01) -> None:
        super().__init__()
        self.trouble_chance, self.unread_chance = trouble_chance, unread_chance
        self.rng = Random(seed)  # noqa: S311 - one seed, one run
        self.seed = seed
        self.mood = list(Mood)[seed % 3]
        self.queue_requests = self.rng.choice([0, 5, 50, 300])
        lanes = queueing_lanes(
            self.queue_requests, *(RESIDENCE_SECONDS[lane] for lane in (Lane.INTERACTIVE, Lane.BULK))
        )
        self.controller = AdmissionController(policy(tenants=TENANTS, lanes=lanes))
        self.requests = 0
        self.looks = 0
        self.dispatches = 0
        self._events = 0
        self._due: list[tuple[float, int, int, Event]] = []  # when, number, dispatch that it belongs to, event
        self._dispatch_of: dict[int, int] = {}
        self._prefill_ends = dict.fromkeys(REPLICAS, 0.0)
        for name in REPLICAS:
            self.come_up(name)

    def come_up(self, name: str) -> None:
        """Let a replica serve, each time with other numbers."""
        made = spec(
            name,
            gross_ceiling_tokens=self.rng.choice([40_000, 96_000]),
            hard_cap_sequences=self.rng.choice([16, 64]),
            prefill_tokens_per_second=self.rng.choice([None, PREFILL_TOKENS_PER_SECOND]),
            decode_seconds_per_token=DECODE_SECONDS,
            overrun_chunk_tokens=1_024,
            release_grace_seconds=0.5,
        )
        self.up.add(name)
        self.budgets[name] = made.budget
        self.hear(ReplicaUp(made))

    def serve(self, requests: int) -> None:
        """Let that many requests come, and everything happen that is due meanwhile."""
        per_second = 60.0 * self.mood.value
        while self.requests < requests:
            self.run(self.now + self.rng.expovariate(per_second))
            self.arrive()
            if self.rng.random() < self.trouble_chance:
                self.trouble()

    def drain(self) -> None:
        """Let nobody come any more; then nothing may be left."""
        while self._due or self.controller.next_wakeup() is not None:
            wakeup = self.controller.next_wakeup()
            self.run(min(at for at in (self._due[0][0] if self._due else None, wakeup) if at is not None))
        assert self.held == {}
        assert self.waiting == {}
        assert self.live == []
        assert len(self.ended) == self.requests
        assert self.controller.check() == ()
        state = self.controller.state(self.now)
        assert [one.equation.active_tokens + one.equation.queued_tokens for one in state.replicas] == [0] * 3

    def run(self, until: float) -> None:
        """Let everything happen that is due by then, to its instant."""
        while True:
            wakeup = self.controller.next_wakeup()
            due = self._due[0][0] if self._due else until + 1.0
            if min(due, until + 1.0 if wakeup is None else wakeup) > until:
                break
            if wakeup is not None and wakeup <= due:
                self.now = max(self.now, wakeup)
                self.hear(Tick())
                continue
            self.now, _, dispatch, event = heapq.heappop(self._due)
            key = getattr(event, "key", 0)
            if self._dispatch_of.get(key) == dispatch:
                self.happen(key, event)
        self.now = until

    def happen(self, key: int, event: Event) -> None:
        """Let an engine or a client do something about a request that lives or waits."""
        if key in self.waiting:
            del self.waiting[key]
            self.end_of(key)
        elif not isinstance(event, FirstToken):
            self.live.remove(key)
        if not isinstance(event, FirstToken | NotSent):
            del self._dispatch_of[key]
        self.hear(event)

    def hear(self, event: Event) -> list[Action]:
        """Tell the controller, and let the engines take up what it dispatches."""
        self._events += 1
        actions = self.tell(event)
        for action in actions:
            if isinstance(action, Dispatch):
                self.dispatches += 1
                self._dispatch_of[action.key] = self.dispatches
                self.take_up(action)
            elif isinstance(action, Evict | Refuse):
                self._dispatch_of.pop(action.key, None)
        if self._events % EVENTS_BETWEEN_LOOKS == 0:
            self.look()
        return actions

    def take_up(self, action: Dispatch) -> None:
        """Decide what becomes of a request on an engine."""
        held = self.held[action.key]
        began = max(self.now, self._prefill_ends[action.replica])
        first_at = began + held.request.input_tokens / PREFILL_TOKENS_PER_SECOND
        self._prefill_ends[action.replica] = first_at
        tokens = self.rng.randint(1, held.ceiling)
        done_at = first_at + tokens * DECODE_SECONDS
        chance = self.rng.random()
        if chance < self.unread_chance:
            return self.later(self.now + 0.001, NotSent(action.key))
        if chance < self.unread_chance + 0.01:
            return self.later(self.rng.uniform(self.now, done_at), Failed(action.key, engine_holds=False))
        if held.request.streamed:
            self.later(first_at, FirstToken(action.key))
        if chance < self.unread_chance + 0.06:
            return self.later(done_at, Failed(action.key, engine_holds=True))
        if chance < self.unread_chance + 0.16:
            return self.later(self.rng.uniform(first_at, done_at), Cancelled(action.key, sent=True))
        return self.later(done_at, Finished(action.key, tokens * held.sequences))

    def later(self, at: float, event: Event) -> None:
        """Let something happen to the dispatch that was made last, or, before any, to a request that waits."""
        heapq.heappush(self._due, (at, len(self._due) + self._events, self._dispatch_of.get(event.key, 0), event))  # type: ignore[union-attr]  # only those with a key

    def arrive(self) -> None:
        """Let a request come; one in ten of those that wait leaves."""
        self.requests += 1
        key, rng = self.requests, self.rng
        made = request(
            key,
            rng.choice([50, 400, 2_000, 9_000]),
            rng.choice([20, 200, 1_000]),
            copies=rng.choice([1, 1, 1, 2]),
            tenant=rng.choice(sorted(TENANTS)),
            streamed=rng.random() < 0.7,
            asked_intent=rng.choice([None, None, None, Intent.BULK]),
            asked_class=rng.choice([None, *PriorityClass]),
            continuing=rng.random() < 0.3,
            fingerprint=f"body {rng.randrange(200)}" if rng.random() < 0.2 else None,
            first_token_deadline=self.now + rng.uniform(0.1, 5.0) if rng.random() < 0.1 else None,
        )
        self.arrived[key], self.bounds[key] = made, self.queue_requests
        self._dispatch_of[key] = 0
        self.hear(Arrived(made))
        if key in self.waiting and rng.random() < 0.1:
            self.later(self.now + rng.uniform(0.0, 3.0), Cancelled(key, sent=False))

    def trouble(self) -> None:
        """Let something happen to a replica."""
        name = self.rng.choice(REPLICAS)
        match self.rng.choice(["down", "up", "derated"]):
            case "down":
                self.up.discard(name)
                self.hear(ReplicaDown(name))
            case "up":
                self.come_up(name)
            case _:
                gross = self.rng.choice([8_000, 60_000])
                self.budgets[name] = ReplicaBudget(gross, 0.1, 32, None, DECODE_SECONDS)
                self.hear(BudgetChanged(name, self.budgets[name]))

    def look(self) -> None:
        """Hold the controller's sums against the books."""
        self.looks += 1
        assert self.controller.check() == ()
        state = self.controller.state(self.now)
        assert state.live_requests == len(self.live)
        for one in state.replicas:
            held = sum(held.tokens for held in self.held.values() if held.replica == one.name)
            assert one.equation.active_tokens == held
        waits = sum(queue.tokens for queue in state.pools[0].queues)
        assert waits == sum(one.tokens for one in self.waiting.values())

    def told(self) -> str:
        """Return what the run was, for the report."""
        return (
            f"seed {self.seed}, {self.mood.name}: {self.requests:,} requests in {self.now / 3600:.1f} h,"
            f" {self.dispatches:,} dispatched, {self.looks:,} looks, a queue of {self.queue_requests}"
        )
