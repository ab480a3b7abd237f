"""What the gate around a rule does, whatever the rule."""

from collections.abc import Iterable, Sequence

import pytest

from fakes.knocks import Knocker, request
from fakes.stages import stage
from llmshed.admission.actions import Dispatch, Enqueue, Evict, Refuse, Released
from llmshed.admission.events import (
    Arrived,
    BudgetChanged,
    Cancelled,
    Draining,
    Failed,
    Finished,
    NotSent,
    PolicyChanged,
    ReplicaDown,
    ReplicaRemoved,
    ReplicaUp,
)
from llmshed.admission.reasons import Reason
from llmshed.admission.replica import Replica
from llmshed.admission.request import Intent
from llmshed.whatif.gates.gate import RuleGate
from llmshed.whatif.gates.rule import Rule, TurnAway, least_outstanding
from llmshed.whatif.gates.table import rule_gate
from llmshed.whatif.gates.work import Work
from llmshed.whatif.setting import Setting

TWO_POOLS = """
[[pools]]
name = "chat"
lanes = ["interactive"]
gross_ceiling_tokens = 60_000
[[pools.replicas]]
name = "a"
url = "simulated:"
[[pools]]
name = "batch"
lanes = ["bulk"]
gross_ceiling_tokens = 60_000
[[pools.replicas]]
name = "b"
url = "simulated:"
"""


class OneAtATime(Rule):
    """One request on a replica; the rest wait for ten seconds, in order."""

    most_waiting = 3

    def place(
        self,
        work: Work,
        candidates: Sequence[Replica],
        behind: Iterable[Work],  # noqa: ARG002 - the rule's signature
        now: float,  # noqa: ARG002 - the rule's signature
    ) -> Replica | TurnAway | None:
        if work.request.input_tokens == 13:
            return TurnAway(Reason.DEADLINE_INFEASIBLE, "thirteen")
        free = [replica for replica in candidates if len(replica.ledger) == 0]
        return least_outstanding(free) if free else None

    def waits_until(self, work: Work) -> float:
        return work.request.arrived_at + 10.0

    def late(self, work: Work) -> TurnAway:
        return TurnAway(Reason.DEADLINE_INFEASIBLE, f"{work.key} waited")

    def displaced(self, work: Work) -> TurnAway:
        return TurnAway(Reason.CONCURRENCY_LIMIT, f"{work.key} is one too many")


def gate_of(setting: Setting) -> RuleGate:
    return rule_gate(setting, lambda _setting, _books: OneAtATime())


def knocker(copies: int = 1, text: str | None = None) -> Knocker:
    return Knocker(gate_of, stage(copies) if text is None else stage(text=text))


def test_the_next_in_line_goes_when_one_ends() -> None:
    one = knocker()
    assert isinstance(one.knock()[0], Dispatch)
    assert isinstance(one.knock()[0], Enqueue)
    released, sent = one.tell(Finished(1), 1.0)
    assert isinstance(released, Released)
    assert isinstance(sent, Dispatch)
    assert (released.key, sent.key) == (1, 2)


def test_the_last_of_a_full_line_is_refused() -> None:
    one = knocker()
    answers = [one.knock()[0] for _ in range(5)]
    assert [type(a) for a in answers] == [Dispatch, Enqueue, Enqueue, Enqueue, Refuse]
    assert isinstance(answers[-1], Refuse)
    assert answers[-1].verdict.detail == "5 is one too many"


def test_a_wait_ends_by_its_own_wakeup() -> None:
    one = knocker()
    one.knock()
    one.knock(now=2.0)
    assert one.gate.next_wakeup() == 12.0
    ((at, evicted),) = one.tick_until(20.0)
    assert isinstance(evicted, Evict)
    assert (at, evicted.verdict.detail) == (12.0, "2 waited")


def test_one_who_is_turned_away_in_line_lets_the_next_come_up() -> None:
    one = knocker()
    for size in (100, 100, 13, 100):
        one.knock(input_tokens=size)
    _, sent, evicted = one.tell(Finished(1), 1.0)
    assert isinstance(sent, Dispatch)
    assert isinstance(evicted, Evict)
    assert (sent.key, evicted.key) == (2, 3)
    assert [action.key for action in one.tell(Finished(2), 2.0) if isinstance(action, Dispatch)] == [4]


def test_pools_do_not_hold_each_other_up() -> None:

    one = knocker(text=TWO_POOLS)
    one.knock()
    assert isinstance(one.knock()[0], Enqueue)
    (sent,) = one.knock(asked_intent=Intent.BULK)
    assert isinstance(sent, Dispatch)
    assert sent.replica == "batch-1"


def test_a_client_that_leaves_the_line_is_forgotten_and_one_that_runs_is_released_later() -> None:
    one = knocker()
    one.knock()
    one.knock()
    assert one.tell(Cancelled(2, sent=False), 0.5) == []
    assert one.tell(Cancelled(1, sent=True), 1.0) == [], "a closed socket is not a released engine"
    ((at, released),) = one.tick_until(30.0)
    assert isinstance(released, Released)
    assert at > 1.0
    assert released.key == 1
    assert one.gate.next_wakeup() is None


def test_a_failure_frees_at_once() -> None:
    one = knocker()
    one.knock()
    assert [type(action) for action in one.tell(Failed(1, engine_holds=False), 1.0)] == [Released]


def test_what_a_lost_replica_never_read_goes_elsewhere_once() -> None:
    one = knocker(3)
    one.knock()
    _, again = one.tell(NotSent(1), 1.0)
    assert isinstance(again, Dispatch)
    assert again.replica == "main-2"
    _, refused = one.tell(NotSent(1), 2.0)
    assert isinstance(refused, Refuse)
    assert refused.verdict.reason is Reason.NO_REPLICA
    lonely = knocker()
    lonely.knock()
    _, refused = lonely.tell(NotSent(1), 1.0)
    assert isinstance(refused, Refuse)
    assert refused.verdict.detail == "the replica was lost before it read the request; no other took it"


def test_a_replica_that_is_down_gets_nothing_and_one_that_comes_up_takes_from_the_line() -> None:
    one = knocker(2)
    one.tell(ReplicaDown("main-2"), 0.0)
    one.knock()
    assert isinstance(one.knock()[0], Enqueue)
    (sent,) = one.tell(ReplicaUp(one.setting.specs[1]), 1.0)
    assert isinstance(sent, Dispatch)
    assert sent.replica == "main-2"
    one.tell(ReplicaRemoved("main-2"), 2.0)
    one.tell(Finished(2), 3.0)
    with pytest.raises(KeyError):
        one.tell(ReplicaDown("main-2"), 4.0)


def test_draining_refuses_what_comes_and_serves_what_waits() -> None:
    one = knocker()
    one.knock()
    one.knock()
    one.tell(Draining(), 1.0)
    (refused,) = one.knock(now=1.0)
    assert isinstance(refused, Refuse)
    assert refused.verdict.reason is Reason.DRAINING
    assert isinstance(one.tell(Finished(1), 2.0)[1], Dispatch)


def test_a_new_policy_and_a_new_budget_hold_for_what_comes() -> None:
    one = knocker()
    one.tell(BudgetChanged("main-1", one.setting.specs[0].budget), 0.0)
    policy = one.setting.policy
    assert one.tell(PolicyChanged(policy), 0.0) == []
    (sent,) = one.knock()
    assert isinstance(sent, Dispatch)
    assert sent.verdict.equation is not None
    assert sent.verdict.equation.safe_budget_tokens == 54_000


def test_a_key_in_use_is_refused_as_a_fault_of_the_caller() -> None:
    one = knocker()
    one.knock()
    one.knock()
    for key in (1, 2):
        with pytest.raises(ValueError, match=f"request {key} is already live"):
            one.gate.handle(Arrived(request(one.setting, key)), 0.0)
