"""From the parameters of a replica to its model: the one place that knows which engine's scheduler is which."""

from typing import assert_never

from llmshed.simulation.model import ReplicaModel
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.simulation.vllm.scheduler import VllmScheduler

Parameters = ReplicaParameters | VllmParameters
"""What a replica of any engine is."""


def build_model(parameters: Parameters) -> ReplicaModel:
    """Return an idle replica: TGI's scheduler or vLLM's, as the parameters are TGI's or vLLM's."""
    match parameters:
        case ReplicaParameters():
            return Scheduler(parameters)
        case VllmParameters():
            return VllmScheduler(parameters)
        case _:
            assert_never(parameters)
