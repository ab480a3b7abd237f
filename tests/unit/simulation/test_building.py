"""Parameters choose the scheduler, and every scheduler serves a sequence through the same calls."""

import pytest

from llmshed.simulation.building import build_model
from llmshed.simulation.limits import OutputPlan
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import Ended, FirstToken
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.sequences import Sequence
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.simulation.vllm.scheduler import VllmScheduler


def test_the_kind_of_parameters_names_the_engine() -> None:
    assert isinstance(build_model(ReplicaParameters()), Scheduler)
    assert isinstance(build_model(VllmParameters()), VllmScheduler)


@pytest.mark.parametrize("parameters", [ReplicaParameters(), VllmParameters()], ids=["tgi", "vllm"])
def test_either_serves_a_lone_sequence_in_one_prefill_and_the_decodes_after_it(
    parameters: ReplicaParameters | VllmParameters,
) -> None:
    model = build_model(parameters)
    assert model.take_permit(1)
    assert isinstance(model.submit(Sequence(1, 100, 20), 5.0), OutputPlan)
    results = []
    while (at := model.next_change_at) is not None:
        results += model.advance(at)
    (first,) = [result for result in results if isinstance(result, FirstToken)]
    (ended,) = [result for result in results if isinstance(result, Ended)]
    # The default step times: 25 ms, 1/8000 s a prompt token, 0.1 ms a decoding sequence.
    assert first.at == pytest.approx(5.0 + 0.025 + 100 / 8000)
    assert ended.at == pytest.approx(first.at + 19 * 0.0251)
    assert (ended.output_tokens, ended.started_at) == (20, 5.0)
    assert model.check() == ()
