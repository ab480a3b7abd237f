"""Smallest reservation first, by hand: 54,000 tokens of safe budget on one replica."""

import pytest

from fakes.knocks import Knocker
from fakes.stages import ONE_POOL, stage
from llmshed.admission.actions import Dispatch, Enqueue, Evict, Refuse
from llmshed.admission.events import Cancelled, Finished
from llmshed.admission.reasons import Reason
from llmshed.whatif.gates.smallest import SmallestFirst
from llmshed.whatif.gates.table import build_gate, rule_gate

SEATS = ONE_POOL.replace("sequences = 100", "sequences = 1")


def one_seat(most_waiting: int = 512) -> Knocker:
    return Knocker(
        lambda s: rule_gate(s, lambda _setting, _books: SmallestFirst(lambda _work: 5.0, most_waiting)),
        stage(text=SEATS),
    )


def test_the_smallest_of_those_that_wait_goes_first() -> None:
    knocker = one_seat()
    knocker.knock(100, 100)
    for size in (900, 300, 600, 300):
        (answer,) = knocker.knock(size, 10)
        assert isinstance(answer, Enqueue)
    order: list[int] = []
    for _ in range(4):
        _, sent = knocker.tell(Finished(order[-1] if order else 1), 1.0)
        assert isinstance(sent, Dispatch)
        order.append(sent.key)
    assert order == [3, 5, 4, 2]


def test_a_small_one_may_pass_what_does_not_fit() -> None:
    knocker = Knocker(lambda s: build_gate("smallest_first", s))
    for _ in range(6):
        assert isinstance(knocker.knock(7000, 1000)[0], Dispatch)
    assert isinstance(knocker.knock(7000, 1000)[0], Enqueue), "6 x 8,000 of 54,000 are lent"
    assert isinstance(knocker.knock(5000, 500)[0], Dispatch)
    assert isinstance(knocker.knock(600, 0 + 1)[0], Enqueue)


def test_a_full_line_turns_its_largest_away() -> None:
    knocker = one_seat(2)
    knocker.knock(100, 100)
    knocker.knock(500, 1)
    knocker.knock(700, 1)
    (refused,) = knocker.knock(900, 1)
    assert isinstance(refused, Refuse)
    assert refused.verdict.reason is Reason.TOKEN_BUDGET_EXHAUSTED
    queued, evicted = knocker.knock(300, 1)
    assert isinstance(queued, Enqueue)
    assert isinstance(evicted, Evict)
    assert evicted.key == 3


def test_work_is_evicted_when_its_objective_has_passed_and_forgotten_when_its_client_leaves() -> None:
    knocker = one_seat()
    knocker.knock(100, 100)
    knocker.knock(100, 100, now=1.0)
    knocker.knock(100, 100, now=2.0)
    assert knocker.tell(Cancelled(2, sent=False), 3.0) == []
    ((at, evicted),) = knocker.tick_until(100.0)
    assert isinstance(evicted, Evict)
    assert (at, evicted.key, evicted.verdict.reason) == (7.0, 3, Reason.DEADLINE_INFEASIBLE)
    assert knocker.gate.next_wakeup() is None


def test_what_exceeds_a_whole_budget_is_refused_for_good() -> None:
    knocker = Knocker(lambda s: build_gate("smallest_first", s), stage(text=ONE_POOL.replace("60_000", "2_000")))
    (answer,) = knocker.knock(1700, 200)
    assert isinstance(answer, Refuse)
    assert (answer.verdict.reason, answer.verdict.status) == (Reason.LANE_LIMIT, 413)


def test_a_line_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="accepted are 1 and more"):
        SmallestFirst(lambda _work: 1.0, 0)
