"""What an operator sees of TGI under load, in virtual time on the simulated replica with its default parameters."""

from math import ceil
from random import Random

import pytest

from llmshed.simulation.cost import StepWork
from llmshed.simulation.limits import OutputPlan
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import Ended, FirstToken
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.sequences import Sequence

DEFAULT = ReplicaParameters()


class Clients:
    """Open-loop clients: requests come when they come."""

    def __init__(self, parameters: ReplicaParameters = DEFAULT) -> None:
        self.replica = Scheduler(parameters)
        self.arrived: dict[int, float] = {}
        self.first: dict[int, float] = {}
        self.ended: dict[int, float] = {}
        self.refused: list[int] = []
        self.most_kv_tokens = 0

    def send(self, key: int, at: float, input_tokens: int, output: int) -> None:
        self.run(until=at)
        self.arrived[key] = at
        if not self.replica.take_permit(key):
            self.refused.append(key)
            return
        assert isinstance(self.replica.submit(Sequence(key, input_tokens, output), at), OutputPlan)

    def run(self, until: float) -> None:
        while (at := self.replica.next_change_at) is not None and at <= until:
            for result in self.replica.advance(at):
                match result:
                    case FirstToken(key, when):
                        self.first[key] = when
                    case Ended():
                        self.ended[result.key] = result.at
                    case _:
                        pass
            self.most_kv_tokens = max(self.most_kv_tokens, self.replica.held_kv_tokens)
        self.replica.advance(until)

    def ttft(self, key: int) -> float:
        return self.first[key] - self.arrived[key]


def test_a_short_prompt_behind_a_long_one_waits_for_all_of_its_prefill() -> None:
    alone = Clients()
    alone.send(1, 0.0, 100, 10)
    alone.run(60)
    behind = Clients()
    behind.send(1, 0.0, 8000, 10)
    behind.send(2, 0.001, 100, 10)
    behind.run(60)
    steps = ceil(8000 / DEFAULT.max_batch_prefill_tokens)
    step = DEFAULT.step_times.seconds(StepWork(prefill_tokens=DEFAULT.max_batch_prefill_tokens))
    assert behind.ttft(2) == pytest.approx(steps * step, rel=0.05)
    assert behind.ttft(2) > 20 * alone.ttft(1)


def test_running_answers_go_on_while_a_long_prompt_is_worked_through() -> None:
    clients = Clients()
    clients.send(1, 0.0, 50, 400)
    clients.send(2, 1.0, 8000, 10)
    clients.run(60)
    # Two long steps more than alone: the stream slows down and never stops.
    assert clients.ended[1] < 400 * 0.0252 + 2 * 0.6


def test_ten_times_the_load_fills_the_permits_and_then_only_refuses() -> None:
    clients, draws, at = Clients(), Random(7), 0.0  # noqa: S311 - a load, no secret
    for key in range(3000):
        at += draws.expovariate(60)
        clients.send(key, at, draws.randint(20, 2000), draws.randint(10, 500))
    clients.run(at + 600)
    assert len(clients.refused) > 1500
    assert len(clients.ended) + len(clients.refused) == 3000
    assert clients.most_kv_tokens <= DEFAULT.kv_tokens
    waits = sorted(clients.ttft(key) for key in clients.first)
    # All 128 permits in line: what is let in waits for seconds, because nothing is refused before the line is full.
    assert waits[len(waits) // 2] > 2
    assert clients.replica.check() == ()


def test_a_light_load_is_served_at_once() -> None:
    clients, draws, at = Clients(), Random(7), 0.0  # noqa: S311 - a load, no secret
    for key in range(300):
        at += draws.expovariate(1.0)
        clients.send(key, at, draws.randint(20, 1000), draws.randint(10, 200))
    clients.run(at + 600)
    assert not clients.refused
    waits = sorted(clients.ttft(key) for key in clients.first)
    assert waits[int(len(waits) * 0.95)] < 0.5
