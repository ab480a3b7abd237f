"""The gate's words performed, and the engines' told to the gate."""

import random
from typing import Any

import pytest

from fakes.plain_replica import PlainReplica
from fakes.stages import EDGES, OpenGate, ShutGate, stage_of, traced
from llmshed.admission.events import Arrived, Failed, Finished, FirstToken
from llmshed.admission.reasons import Reason
from llmshed.whatif.belief import Belief
from llmshed.whatif.clients_at_work import ClientsAtWork
from llmshed.whatif.door import Door
from llmshed.whatif.measures import Tally
from llmshed.whatif.replicas import Replicas
from llmshed.whatif.report import Slice
from llmshed.whatif.rungs_used import RungsUsed
from llmshed.whatif.service import Service
from llmshed.whatif.visits import Try
from llmshed.workload.clients import ClientModel


class House:
    """A service on plain replicas, with its gate and figures at hand."""

    def __init__(
        self, *, permits: int = 4, shut: Reason | None = None, clients: ClientModel = ClientModel.NONE, copies: int = 1
    ) -> None:
        self.model = PlainReplica(permits=permits)
        self.setting = stage_of(lambda: self.model if copies == 1 else PlainReplica(permits=permits), copies)
        self.gate = OpenGate(self.setting) if shut is None else ShutGate(self.setting, shut)
        self.replicas = Replicas(self.setting.models)
        self.door, self.tally, self.belief = Door(stage_of(PlainReplica), EDGES), Tally(10), Belief()
        at_work = ClientsAtWork(clients, self.setting, random.Random(0))  # noqa: S311 - one seed
        self.rungs = RungsUsed(self.setting.policy)
        self.service = Service(
            self.setting, self.gate, self.replicas, self.door, at_work, self.tally, self.belief, self.rungs
        )

    def come(self, now: float = 0.0, **changed: Any) -> Try:
        visit = self.door.visit(traced(now, **changed), now)
        self.tally.arrive(visit)
        attempt = self.service.begin_try(visit, now)
        self.service.offer(attempt, now)
        return attempt

    def go_on(self) -> None:
        while (at := self.replicas.next_at) is not None:
            self.service.hear(self.replicas.advance_next(at), at)

    def told(self) -> list[object]:
        """What the gate was told of requests, arrivals apart."""
        return [event for _, event in self.gate.seen if not isinstance(event, Arrived)]

    def total(self) -> Slice:
        return self.tally.figures(1.0, 100.0).total


def test_a_stream_is_told_with_its_first_token_and_its_end() -> None:
    house = House()
    house.come()
    house.go_on()
    assert house.told() == [FirstToken(1), Finished(1, 5)]
    assert [at for at, _ in house.gate.seen] == pytest.approx([0.0, 0.1, 0.3])
    assert house.service.visits() == []
    assert house.setting.traced == {}


def test_a_whole_answer_shows_the_gate_no_first_token() -> None:
    house = House()
    house.come(streamed=False)
    house.go_on()
    assert house.told() == [Finished(1, 5)]


def test_copies_are_one_request_to_the_gate_and_keys_are_never_used_twice() -> None:
    house = House(copies=1)
    house.come(copies=2)
    house.come()
    assert set(house.setting.traced) == {1, 2, 3}
    assert house.setting.truth(2).copies == 2
    house.go_on()
    assert house.told() == [FirstToken(1), Finished(1, 10), FirstToken(3), Finished(3, 5)]
    assert house.setting.traced == {}


def test_an_engine_that_is_full_is_told_to_the_gate_as_a_failure_that_holds_nothing() -> None:
    house = House(permits=1)
    house.come()
    house.come()
    assert house.told() == [Failed(2, engine_holds=False)]
    house.go_on()
    assert house.total().refusals == {"engine_overloaded": 1}
    assert (house.total().failed, house.total().finished) == (1, 1)
    assert house.belief.truth().broken_invariants_count == 0
    assert house.setting.traced == {}


def test_a_request_beyond_the_engine_is_counted_as_refused_by_it() -> None:
    house = House()
    house.come(input_tokens=1001)
    assert house.total().refusals == {"engine_refused": 1}


def test_a_lost_sequence_fails_its_request_and_its_copies_are_left() -> None:
    house = House()
    house.model.lose = {1}
    house.come(copies=2)
    house.go_on()
    assert house.told() == [Failed(1, engine_holds=True)]
    assert house.total().refusals == {"engine_failed": 1}
    assert house.model.sequences() == []
    assert house.setting.traced == {}


def test_a_lone_sequence_that_is_lost_leaves_nothing_to_wait_for() -> None:
    house = House()
    house.model.lose = {1}
    house.come()
    house.go_on()
    assert house.told() == [Failed(1, engine_holds=False)]


def test_a_refused_client_comes_back_under_a_new_key_as_the_same_visit() -> None:
    house = House(shut=Reason.TOKEN_BUDGET_EXHAUSTED, clients=ClientModel.SDK)
    attempt = house.come(now=1.0)
    at = house.service.next_retry_at
    assert at is not None
    assert 3.0 <= at <= 5.0, "told 2 s, jittered upward to at most twice that"
    assert house.service.visits() == [attempt.visit]
    visit = house.service.pop_retry()
    second = house.service.begin_try(visit, at)
    assert (second.key, second.visit.tries, second.visit.first_arrived_at) == (2, 2, 1.0)


def test_a_client_that_gives_up_is_counted_as_given_up() -> None:
    house = House(shut=Reason.LANE_LIMIT, clients=ClientModel.SDK)
    house.come()
    assert house.service.next_retry_at is None
    assert (house.total().given_up, house.total().refusals) == (1, {"lane_limit": 1})


def test_those_that_come_back_go_by_time_and_then_by_order() -> None:
    house = House(shut=Reason.TOKEN_BUDGET_EXHAUSTED, clients=ClientModel.RUDE)
    visits = [house.come(now=at).visit for at in (5.0, 5.0, 4.0)]
    assert [house.service.pop_retry() for _ in range(3)] == [visits[2], visits[0], visits[1]]


def test_broken_invariants_of_gate_and_engine_are_gathered() -> None:
    house = House()
    house.model.broken = ("KV is held by nobody",)
    assert house.service.check() == ("main-1: KV is held by nobody",)
