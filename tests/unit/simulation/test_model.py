"""What holds for the model of every engine."""

import pytest

from llmshed.simulation.building import build_model
from llmshed.simulation.model import ReplicaModel
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import Ended, Failed, FirstToken, StepsEnded
from llmshed.simulation.sequences import Sequence
from llmshed.simulation.vllm.parameters import VllmParameters

TGI, VLLM = ReplicaParameters(max_concurrent_requests=8), VllmParameters()
BOTH = pytest.mark.parametrize("parameters", [TGI, VLLM], ids=["tgi", "vllm"])


def put(model: ReplicaModel, key: int, at: float) -> None:
    assert model.take_permit(key)
    model.submit(Sequence(key, 100, 4), at)


def joined(model: ReplicaModel) -> list[int]:
    """Return how many began with each step that somebody began with."""
    steps = []
    while (at := model.next_change_at) is not None:
        steps += [one.joined for one in model.advance(at) if isinstance(one, StepsEnded) and one.joined]
    return steps


@BOTH
def test_calls_at_one_instant_reach_an_idle_engine_together(parameters: ReplicaParameters | VllmParameters) -> None:
    model = build_model(parameters)
    model.advance(1)
    put(model, 0, 1)
    put(model, 1, 1)
    assert joined(model) == [2]


@BOTH
def test_an_idle_engine_that_is_advanced_between_them_begins_with_the_first(
    parameters: ReplicaParameters | VllmParameters,
) -> None:
    model = build_model(parameters)
    put(model, 0, 1)
    model.advance(1)
    put(model, 1, 1)
    assert joined(model) == [1, 1]


@pytest.mark.parametrize(("parameters", "waiting_is_lost"), [(TGI, False), (VLLM, True)], ids=["tgi", "vllm"])
def test_a_failed_step_loses_who_takes_part_and_the_end_of_a_process_who_waits(
    parameters: ReplicaParameters | VllmParameters, *, waiting_is_lost: bool
) -> None:
    model = build_model(parameters)
    put(model, 0, 1)
    model.advance(1)
    put(model, 1, 1)
    model.fail_step("out of memory")
    results = []
    while (at := model.next_change_at) is not None:
        results += model.advance(at)
    lost = [one.key for one in results if isinstance(one, Failed)]
    assert lost == ([0, 1] if waiting_is_lost else [0])
    assert [one.key for one in results if isinstance(one, Ended)] == ([] if waiting_is_lost else [1])


@BOTH
def test_a_step_that_fails_while_the_engine_is_stalled_fails_when_the_stall_is_over(
    parameters: ReplicaParameters | VllmParameters,
) -> None:
    model = build_model(parameters)
    put(model, 0, 1)
    model.advance(1)
    model.stall(1, float("inf"))
    model.fail_step("out of memory")
    assert (model.advance(50), model.next_step_at, model.next_change_at) == ([], None, None)
    model.resume(60)
    assert model.next_change_at == 60
    assert [one.key for one in model.advance(60) if isinstance(one, Failed)] == [0]


@BOTH
def test_a_failure_called_while_nothing_runs_meets_the_next_step(
    parameters: ReplicaParameters | VllmParameters,
) -> None:
    model = build_model(parameters)
    model.fail_step("out of memory")
    put(model, 0, 1)
    put(model, 1, 1)
    results = model.advance(10)
    assert [one.key for one in results if isinstance(one, Failed)] == [0, 1]
    put(model, 2, 10)
    results = model.advance(10) + model.advance(20)
    assert [one.key for one in results if isinstance(one, FirstToken)] == [2]


@BOTH
def test_a_prompt_of_no_tokens_takes_a_position_and_is_served(parameters: ReplicaParameters | VllmParameters) -> None:
    model = build_model(parameters)
    assert model.take_permit(0)
    model.submit(Sequence(0, 0, 3), 1)
    results = model.advance(100)
    assert [one.output_tokens for one in results if isinstance(one, Ended)] == [3]
    assert model.held_kv_tokens == 0
