"""A model's own books of what a controller says: who waits since when, and who runs where with how many tokens.

Every word of the controller is held against them: what is lent was free, nobody waits beyond the bounds of the lane, a
charge comes back whole, and each request ends once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakes.door import policy
from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict, Refuse, Released, RungChanged
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import Event, NotSent
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, PriorityClass, Request
from llmshed.admission.verdict import Decision, Verdict

if TYPE_CHECKING:
    from llmshed.admission.policy import ReplicaBudget

RESIDENCE_SECONDS = {Lane.INTERACTIVE: 8.0, Lane.BULK: 100.0}
"""How long a request waits at most, under every policy that the books are kept for."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a dispatched request holds."""

    request: Request
    replica: str
    tokens: int
    sequences: int
    ceiling: int


@dataclass(frozen=True, slots=True)
class Queued:
    """A request that waits."""

    request: Request
    lane: Lane
    priority_class: PriorityClass
    tokens: int
    since: float

    @property
    def residence_ends(self) -> float:
        return self.since + RESIDENCE_SECONDS[self.lane]


class Books:
    """The books of one controller on one virtual clock; a test keeps `now`, `budgets`, `up` and `live` itself."""

    def __init__(self) -> None:
        self.now = 0.0
        self.controller = AdmissionController(policy())
        self.arrived: dict[int, Request] = {}
        self.bounds: dict[int, int] = {}  # how many may wait, by the policy that each request came under
        self.ended: set[int] = set()
        self.held: dict[int, Held] = {}  # dispatched and not released
        self.live: list[int] = []  # dispatched and not ended
        self.waiting: dict[int, Queued] = {}
        self.budgets: dict[str, ReplicaBudget] = {}  # of all that are known
        self.up: set[str] = set()
        self.bounced: set[int] = set()  # kept off the replica that was lost, which may count as up
        self.draining = False
        self.rung = 0  # in force, by what was told
        self.punctual = True  # whether each wake-up was kept since the last event

    def tell(self, event: Event) -> list[Action]:
        """Perform the actions in the model's books."""
        before = {lane: self.queue_of(lane) for lane in RESIDENCE_SECONDS}
        actions = self.controller.handle(event, self.now)
        for action in actions:
            match action:
                case Dispatch(key, name, verdict):
                    self.dispatched(key, name, verdict)
                case Released(key, name, tokens):
                    held = self.held.pop(key)
                    assert (held.replica, held.tokens) == (name, tokens)
                    if not (isinstance(event, NotSent) and event.key == key):
                        self.end_of(key)
                case Enqueue(key, _, verdict):
                    self.enqueued(key, verdict, before)
                case Evict(key, verdict):
                    self.evicted(self.waiting.pop(key), verdict)
                    self.end_of(key)
                case Refuse(key, verdict):
                    assert key not in self.held
                    assert key not in self.waiting
                    self.refused(verdict)
                    self.end_of(key)
                case RungChanged(step):
                    assert step.before == self.rung
                    self.rung = step.after
        return actions

    def end_of(self, key: int) -> None:
        assert key not in self.ended
        self.ended.add(key)

    def dispatched(self, key: int, name: str, verdict: Verdict) -> None:
        assert key not in self.held
        assert name in self.up
        assert verdict.decision is Decision.ADMIT
        assert verdict.reservation is not None
        assert verdict.equation is not None
        assert verdict.output_ceiling_tokens is not None
        # Read before the charge: what was lent was free, by its own books and by the model's.
        assert verdict.reservation.total_tokens <= verdict.equation.headroom_tokens
        assert verdict.reservation.sequences <= verdict.equation.free_sequences
        self.waiting.pop(key, None)
        tokens, sequences = verdict.reservation.total_tokens, verdict.reservation.sequences
        self.held[key] = Held(self.arrived[key], name, tokens, sequences, verdict.output_ceiling_tokens)
        self.live.append(key)
        there = [held for held in self.held.values() if held.replica == name]
        assert sum(held.tokens for held in there) <= self.budgets[name].safe_budget_tokens
        assert sum(held.sequences for held in there) <= self.budgets[name].hard_cap_sequences

    def queue_of(self, lane: Lane) -> tuple[int, int]:
        """Return how many wait in a lane, and their tokens."""
        tokens = [one.tokens for one in self.waiting.values() if one.lane is lane]
        return len(tokens), sum(tokens)

    def enqueued(self, key: int, verdict: Verdict, before: Mapping[Lane, tuple[int, int]]) -> None:
        assert key not in self.held
        assert key not in self.waiting
        assert verdict.decision is Decision.QUEUE
        assert verdict.reservation is not None
        assert verdict.lane is not None
        assert verdict.priority_class is not None
        assert verdict.delay is not None
        assert verdict.delay.wait_seconds <= RESIDENCE_SECONDS[verdict.lane]
        self.waiting[key] = Queued(
            self.arrived[key], verdict.lane, verdict.priority_class, verdict.reservation.total_tokens, self.now
        )
        # A queue that is beyond a bound which was lowered need only not grow.
        requests, tokens = self.queue_of(verdict.lane)
        most_tokens = sum(self.budgets[name].safe_budget_tokens for name in self.up)
        assert requests <= max(self.bounds[key], before[verdict.lane][0])
        assert tokens <= max(most_tokens, before[verdict.lane][1])

    def evicted(self, queued: Queued, verdict: Verdict) -> None:
        self.refused(verdict)
        if verdict.reason is Reason.QUEUE_TIMEOUT and self.punctual:
            assert self.now == queued.residence_ends, queued
        if verdict.reason is Reason.SHED_PRIORITY and verdict.rung is None:
            same_lane = [one for one in self.waiting.values() if one.lane is queued.lane]
            assert all(one.priority_class.rank <= queued.priority_class.rank for one in same_lane)

    def refused(self, verdict: Verdict) -> None:
        assert verdict.decision is Decision.REFUSE
        assert verdict.reason is not None
        if verdict.reason is not Reason.DEADLINE_INFEASIBLE:  # no wait cures a deadline that has passed
            assert (verdict.retry_after_seconds is not None) == (verdict.status in {429, 503}), verdict
        assert (verdict.retry_after_seconds or 0.0) >= 0.0
