"""A gate that says what a test tells it to say, for whoever watches gates."""

from dataclasses import dataclass, field, replace
from typing import Any

from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict, Refuse, Released
from llmshed.admission.budget import Reservation
from llmshed.admission.events import Arrived, Event, Tick
from llmshed.admission.policy import AdmissionPolicy, BulkShare, ModelLimits, ReplicaBudget, ReplicaSpec
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, PriorityClass, Request
from llmshed.admission.settings import admission_policy
from llmshed.admission.verdict import Decision, Verdict
from llmshed.config.loading import load_config
from llmshed.whatif.monitors.watched import WatchedGate

MODEL = "m"


@dataclass(slots=True)
class ScriptedGate:
    """Answers the next event with `answer`."""

    answer: list[Action] = field(default_factory=list)

    def handle(self, _event: Event, _now: float) -> list[Action]:
        answer, self.answer = self.answer, []
        return answer

    def next_wakeup(self) -> float | None:
        return None

    def check(self) -> tuple[str, ...]:
        return ("its own",)


def policy_of(lanes: str = '["interactive", "bulk"]', residence_seconds: float = 4.0) -> AdmissionPolicy:
    """Return the policy of one pool with these lanes, two places and 3,000 tokens in each queue."""
    text = f"""
    [lanes.interactive]
    queue_requests = 2
    queue_tokens = 3000
    max_residence_seconds = {residence_seconds}
    [lanes.bulk]
    queue_requests = 2
    queue_tokens = 3000
    [[pools]]
    name = "main"
    model = "{MODEL}"
    lanes = {lanes}
    replicas = [{{ name = "a", url = "simulated:" }}]
    """
    return admission_policy(load_config(text, "llmshed.toml", {}, {}).config)


def spec_of(name: str = "a", **changed: Any) -> ReplicaSpec:
    """Return a replica that lends 10,000 tokens and 8 seats, 500 and half of them to bulk, and 100 prompt tokens/s."""
    budget = ReplicaBudget(10_000, 0.0, 8, prefill_tokens_per_second=2000.0, bulk=BulkShare(0.5, 0.05, 0.3, 0.05))
    return ReplicaSpec(name, "main", replace(budget, **changed), ModelLimits(9000, 9001))


class Stage:
    """A scripted gate that is watched, and short words for what happens before it."""

    def __init__(self, policy: AdmissionPolicy | None = None, specs: tuple[ReplicaSpec, ...] = (spec_of(),)) -> None:
        self.gate = ScriptedGate()
        self.watched = WatchedGate(self.gate, policy or policy_of(), specs)

    def verdict(self, tokens: int, lane: Lane, rank: PriorityClass, **changed: Any) -> Verdict:
        """Return a verdict on a request of which a tenth is its prompt."""
        reservation = Reservation(tokens // 10, tokens - tokens // 10, 0, 1)
        return Verdict(Decision.ADMIT, lane=lane, priority_class=rank, reservation=reservation, **changed)

    def tell(self, event: Event, now: float, *answer: Action) -> None:
        self.gate.answer = list(answer)
        assert self.watched.handle(event, now) == list(answer)

    def come(self, key: int, now: float, *answer: Action) -> None:
        self.tell(Arrived(Request(key, "anonymous", MODEL, (100,), arrived_at=now)), now, *answer)

    def run(
        self, key: int, now: float, tokens: int, lane: Lane = Lane.INTERACTIVE,
        rank: PriorityClass = PriorityClass.NORMAL, replica: str = "a",
    ) -> None:  # fmt: skip
        """Let a request arrive and be dispatched at once."""
        self.come(key, now, Dispatch(key, replica, self.verdict(tokens, lane, rank)))

    def wait(
        self,
        key: int,
        now: float,
        tokens: int,
        lane: Lane = Lane.INTERACTIVE,
        rank: PriorityClass = PriorityClass.NORMAL,
    ) -> None:
        """Let a request arrive and be queued."""
        self.come(key, now, Enqueue(key, "main", self.verdict(tokens, lane, rank)))

    def start(
        self, key: int, now: float, tokens: int, lane: Lane = Lane.INTERACTIVE,
        rank: PriorityClass = PriorityClass.NORMAL, replica: str = "a",
    ) -> None:  # fmt: skip
        """Let a request that waits be dispatched."""
        self.tell(Tick(), now, Dispatch(key, replica, self.verdict(tokens, lane, rank)))

    def end(self, key: int, now: float, tokens: int, replica: str = "a") -> None:
        self.tell(Tick(), now, Released(key, replica, tokens))

    def refuse(
        self, key: int, now: float, tokens: int, reason: Reason = Reason.TOKEN_BUDGET_EXHAUSTED,
        lane: Lane = Lane.INTERACTIVE, rank: PriorityClass = PriorityClass.NORMAL, **changed: Any,
    ) -> tuple[str, ...]:  # fmt: skip
        """Let a request be refused at its arrival; returns what the monitors say to it."""
        self.come(key, now, Refuse(key, self.verdict(tokens, lane, rank, reason=reason, **changed)))
        return self.broken()

    def evict(
        self, key: int, now: float, tokens: int, reason: Reason = Reason.QUEUE_TIMEOUT,
        lane: Lane = Lane.INTERACTIVE, rank: PriorityClass = PriorityClass.NORMAL, **changed: Any,
    ) -> tuple[str, ...]:  # fmt: skip
        """Let a request that waits be turned away; returns what the monitors say to it."""
        self.tell(Tick(), now, Evict(key, self.verdict(tokens, lane, rank, reason=reason, **changed)))
        return self.broken()

    def broken(self) -> tuple[str, ...]:
        own, *new = self.watched.check()
        assert own == "its own"
        return tuple(new)
