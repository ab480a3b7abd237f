"""The controller under any order of events: nothing leaks, nothing is lent twice, every request ends once.

The model keeps its own books: which request runs where with how many tokens, by the actions alone. After every step the
controller's own `check`, its state and the model must agree.
"""

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fakes.door import LANES, policy, request, spec
from llmshed.admission.actions import Action, Dispatch, Refuse, Released
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
    PolicyChanged,
    ReplicaDown,
    ReplicaRemoved,
    ReplicaUp,
    Tick,
)
from llmshed.admission.policy import LanePolicy, ReplicaBudget, TenantPolicy
from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.admission.verdict import Decision

TENANTS = {
    "acme": TenantPolicy("acme", max_concurrent_requests=6, max_reserved_tokens=60_000),
    "other": TenantPolicy("other", intents=frozenset({Intent.BULK}), top_class=PriorityClass.HIGH),
}
REPLICAS = ("r1", "r2", "r3")


class Door(RuleBasedStateMachine):
    """Random arrivals, endings, outages, budgets and reloads on one virtual clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.keys = 0
        self.controller = AdmissionController(policy(tenants=TENANTS))
        self.held: dict[int, tuple[str, int]] = {}  # dispatched and not released: replica and tokens
        self.live: list[int] = []  # dispatched and not ended
        self.known: set[str] = set()

    def tell(self, event: Event) -> list[Action]:
        """Perform the actions in the model's books."""
        actions = self.controller.handle(event, self.now)
        for action in actions:
            match action:
                case Dispatch(key, replica, verdict):
                    assert key not in self.held
                    assert verdict.decision is Decision.ADMIT
                    assert verdict.reservation is not None
                    assert verdict.equation is not None
                    # Read before the charge: what was lent was free.
                    assert verdict.reservation.total_tokens <= verdict.equation.headroom_tokens
                    assert verdict.reservation.sequences <= verdict.equation.free_sequences
                    self.held[key] = (replica, verdict.reservation.total_tokens)
                    self.live.append(key)
                case Released(key, replica, tokens):
                    assert self.held.pop(key) == (replica, tokens)
                case Refuse(key, verdict):
                    assert key not in self.held
                    assert verdict.reason is not None
                    assert (verdict.retry_after_seconds is not None) == (verdict.status in {429, 503})
                case unexpected:
                    raise AssertionError(unexpected)
        return actions

    @initialize()
    def one_replica(self) -> None:
        self.come_up("r1", 96_000, 8)

    @rule(
        prompts=st.lists(st.integers(0, 30_000), min_size=1, max_size=3),
        output=st.none() | st.integers(1, 9_000),
        copies=st.integers(1, 3),
        tenant=st.sampled_from(sorted(TENANTS)),
        intent=st.none() | st.sampled_from(Intent),
    )
    def arrive(self, prompts: list[int], output: int | None, copies: int, tenant: str, intent: Intent | None) -> None:
        self.keys += 1
        made = request(self.keys, prompts, output, copies=copies, tenant=tenant, asked_intent=intent)
        expected = self.controller.assess(made, self.now)
        before = set(self.held)
        *_, answer = self.tell(Arrived(made))
        assert isinstance(answer, Dispatch | Refuse)
        if before <= set(self.held):  # nothing came due in between, so the question and the answer saw the same
            assert answer.verdict == expected

    @precondition(lambda self: self.live)
    @rule(data=st.data(), how=st.sampled_from(["finished", "failed", "held", "cancelled", "unsent"]))
    def end(self, data: st.DataObject, how: str) -> None:
        key = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
        event: Event
        match how:
            case "finished":
                event = Finished(key, 1)
            case "failed":
                event = Failed(key, engine_holds=False)
            case "held":
                event = Failed(key, engine_holds=True)
            case "cancelled":
                event = Cancelled(key, sent=True)
            case _:
                event = Cancelled(key, sent=False)
        actions = self.tell(event)
        at_once = how in {"finished", "failed", "unsent"}
        assert at_once == any(isinstance(action, Released) and action.key == key for action in actions)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def see_first_token(self, data: st.DataObject) -> None:
        self.tell(FirstToken(data.draw(st.sampled_from(self.live))))

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def bounce(self, data: st.DataObject) -> None:
        key = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
        lost, _ = self.held[key]
        *_, answer = self.tell(NotSent(key))
        assert isinstance(answer, Dispatch | Refuse)
        if isinstance(answer, Dispatch):
            assert answer.replica != lost

    @rule(
        name=st.sampled_from(REPLICAS),
        gross=st.sampled_from([0, 10_000, 96_000]),
        cap=st.integers(0, 8),
    )
    def come_up(self, name: str, gross: int, cap: int) -> None:
        self.known.add(name)
        self.tell(ReplicaUp(spec(name, gross_ceiling_tokens=gross, hard_cap_sequences=cap, overrun_chunk_tokens=1_024)))

    @precondition(lambda self: self.known)
    @rule(data=st.data(), what=st.sampled_from(["down", "removed", "shrunk"]))
    def trouble(self, data: st.DataObject, what: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.known)))
        match what:
            case "down":
                self.tell(ReplicaDown(name))
            case "shrunk":
                self.tell(BudgetChanged(name, ReplicaBudget(5_000, 0.1, 2)))
            case _:
                self.tell(ReplicaRemoved(name))
                self.known.discard(name)

    @rule(bulk=st.none() | st.integers(1_000, 20_000))
    def reload(self, bulk: int | None) -> None:
        lanes = LANES | {Lane.BULK: LanePolicy(bulk, None, 1_024)}
        self.tell(PolicyChanged(policy(tenants=TENANTS, lanes=lanes)))

    @rule(seconds=st.floats(0.01, 200.0))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.tell(Tick())

    @invariant()
    def books_agree(self) -> None:
        assert self.controller.check() == ()
        state = self.controller.state(self.now)
        assert state.live_requests == len(self.live)
        for replica in state.replicas:
            held = [tokens for name, tokens in self.held.values() if name == replica.name]
            assert replica.equation.active_tokens == sum(held)
            assert replica.releasing_tokens <= replica.equation.active_tokens
        releasing = set(self.held) - set(self.live)
        wakeup = self.controller.next_wakeup()
        assert (wakeup is not None) == bool(releasing)

    def teardown(self) -> None:
        """Everything ends: then nothing may be left, however long the engines hold on."""
        while self.live:
            self.tell(Cancelled(self.live.pop(), sent=True))
        while (wakeup := self.controller.next_wakeup()) is not None:
            self.now = max(self.now, wakeup)
            self.tell(Tick())
        assert self.held == {}
        assert sum(replica.equation.active_tokens for replica in self.controller.state(self.now).replicas) == 0
        assert self.controller.check() == ()


TestDoor = Door.TestCase
