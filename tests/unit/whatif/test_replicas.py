"""Replicas at work: who runs where, which is due next, and how busy each was."""

import pytest

from fakes.plain_replica import PlainReplica
from fakes.stages import EDGES, GPU, stage, traced
from llmshed.simulation.building import Parameters, build_model
from llmshed.simulation.results import Ended, FirstToken
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.whatif.door import Door
from llmshed.whatif.replicas import EngineRefusal, ReplicaAtWork, Replicas
from llmshed.whatif.visits import Try

DOOR = Door(stage(), EDGES)


def attempt(key: int, input_tokens: int = 10, output_tokens: int = 5, copies: int = 1) -> Try:
    return Try(key, DOOR.visit(traced(0.0, input_tokens, output_tokens, copies=copies), 0.0), 0.0)


def test_a_replica_tells_first_token_and_end_of_whoever_it_serves() -> None:
    replica, one = ReplicaAtWork("a", PlainReplica()), attempt(1)
    assert replica.send(one, 100, (1,), 0.0) is None
    assert replica.advance(0.05) == []
    ((who, first),) = replica.advance(0.1)
    assert who is one
    assert first == FirstToken(1, 0.1)
    ((who, end),) = replica.advance(5.0)
    assert isinstance(end, Ended)
    assert end.output_tokens == 5
    assert end.at == pytest.approx(0.3)
    assert replica.owners == {}


def test_the_ceiling_on_the_wire_ends_the_answer() -> None:
    replica = ReplicaAtWork("a", PlainReplica())
    replica.send(attempt(1, output_tokens=50), 3, (1,), 0.0)
    (_, (_, end)) = replica.advance(9.0)
    assert isinstance(end, Ended)
    assert end.output_tokens == 3


def test_a_request_whose_copies_lack_permits_is_refused_whole_and_leaves_nothing_behind() -> None:
    replica = ReplicaAtWork("a", PlainReplica(permits=3))
    replica.send(attempt(1), 100, (1,), 0.0)
    assert replica.send(attempt(2, copies=3), 100, (2, 3, 4), 0.0) is EngineRefusal.OVERLOADED
    assert replica.model.permits_in_use == 1
    assert set(replica.owners) == {1}
    assert replica.send(attempt(5, copies=2), 100, (5, 6), 0.0) is None
    assert (replica.usage.dispatched, replica.usage.refused) == (3, 1)


def test_a_request_beyond_the_engines_limits_is_refused_whole() -> None:
    replica = ReplicaAtWork("a", PlainReplica(max_input_tokens=100))
    assert replica.send(attempt(1, input_tokens=101, copies=2), 10, (1, 2), 0.0) is EngineRefusal.INVALID
    assert replica.model.permits_in_use == 0


def test_what_nobody_waits_for_any_more_is_not_told() -> None:
    replica, one = ReplicaAtWork("a", PlainReplica()), attempt(1, copies=2)
    replica.send(one, 100, (1, 2), 0.0)
    assert replica.abandon(one)
    assert replica.advance(10.0) == []
    assert not replica.abandon(one)


def test_use_is_integrated_over_time() -> None:
    replica = ReplicaAtWork("a", PlainReplica(seats=1))
    replica.send(attempt(1), 90, (1,), 0.0)  # runs until 0.3 and holds 10 + 90 tokens
    replica.send(attempt(2), 40, (2,), 0.0)  # waits until 0.3, runs until 0.6 and holds 10 + 40
    while (at := replica.model.next_change_at) is not None:
        replica.advance(at)
    replica.advance(1.0)
    use = replica.use(kv_tokens=1000)
    assert use.kv_held_share == pytest.approx((0.3 * 100 + 0.3 * 50) / 1.0 / 1000)
    assert use.mean_sequences == pytest.approx(0.6)
    assert use.mean_queued == pytest.approx(0.3)


def test_a_step_of_the_engine_makes_it_busy() -> None:
    setting = stage()
    replica = ReplicaAtWork("a", setting.build_model())
    replica.send(attempt(1, 1000, 11), 11, (1,), 0.0)  # 0.11 s of prefill, then ten steps of 0.0102 s
    while (at := replica.model.next_change_at) is not None:
        replica.advance(at)
    replica.advance(1.0)
    use = replica.use(kv_tokens=60_000)
    assert use.prefill_share == pytest.approx(0.11)
    assert use.busy_share == pytest.approx(0.11 + 10 * 0.0102)


def test_the_earliest_change_comes_first_and_equal_ones_go_by_place() -> None:
    replicas = Replicas({name: PlainReplica() for name in ("a", "b", "c")})
    for key, (name, input_tokens) in enumerate((("c", 10), ("b", 10), ("a", 20)), start=1):
        replicas[name].send(attempt(key, input_tokens, output_tokens=1), 1, (key,), 0.0)
        replicas.note_change(name)
    told: list[tuple[float, FirstToken]] = []
    while (at := replicas.next_at) is not None:
        told += [(at, result) for _, result in replicas.advance_next(at) if isinstance(result, FirstToken)]
    assert [(at, result.key) for at, result in told] == [(0.1, 2), (0.1, 1), (0.2, 3)]


def test_a_change_that_was_put_off_or_cancelled_does_not_come() -> None:
    replicas = Replicas({"a": PlainReplica()})
    one = attempt(1)
    replicas["a"].send(one, 5, (1,), 0.0)
    replicas.note_change("a")
    replicas["a"].abandon(one)
    replicas.note_change("a")
    assert replicas.next_at is None
    replicas["a"].send(attempt(2, 30), 5, (2,), 0.0)
    replicas.note_change("a")
    assert replicas.next_at == pytest.approx(0.3)


@pytest.mark.parametrize("parameters", [GPU, VllmParameters(step_times=GPU.step_times)], ids=["tgi", "vllm"])
def test_tokens_are_told_as_they_come_although_stretches_are_single_events(parameters: Parameters) -> None:
    replicas = Replicas({name: build_model(parameters) for name in "ab"})
    sent, ended, now = 0, 0, 0.0

    def advance(until: float) -> None:
        nonlocal ended
        while (at := replicas.next_at) is not None and at <= until:
            ended += sum(told.output_tokens for _, told in replicas.advance_next(at) if isinstance(told, Ended))

    for number in range(40):
        now = 0.3 * number
        advance(now)
        name = "ab"[number % 2]
        replicas.advance(name, now)
        tokens = 20 + 37 * number % 300
        assert replicas[name].send(attempt(number, 300 + 90 * number, tokens), tokens, (number,), now) is None
        replicas.note_change(name)
        sent += tokens
        for name in "ab":
            replicas.advance(name, now)
        seen = ended + sum(replica.model.output_tokens(key) for replica in replicas for key in replica.owners)
        assert replicas.tokens_by(now) == pytest.approx(seen, rel=0.05, abs=30)
    assert replicas.tokens_by(now) > 0.3 * sent
    advance(1e6)
    assert replicas.next_at is None
    assert ended == sent
    assert replicas.tokens_by(1e6) == pytest.approx(sent, rel=0.03)
    assert replicas.tokens_by(2e6) == replicas.tokens_by(1e6)
