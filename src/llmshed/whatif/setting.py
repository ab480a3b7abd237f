"""What one run stands on: the policy, the replicas, the objectives, and what the gateway itself costs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from llmshed.admission.policy import AdmissionPolicy, ReplicaSpec
from llmshed.admission.request import Lane
from llmshed.simulation.building import Parameters
from llmshed.simulation.model import ReplicaModel
from llmshed.workload.request import TracedRequest

SHORTEST_TTFT_OBJECTIVE_SECONDS = 1.0
"""Nobody is held to a first token sooner than this, however small the request."""
IDLE_TTFT_MULTIPLE = 5.0
"""How many times its TTFT on an idle replica a request may wait for its first token."""
GATEWAY_SECONDS_PER_REQUEST = 0.002
"""CPU time of the gateway's process for a short streamed request, as docs/performance.md has it."""
GATEWAY_SECONDS_PER_INPUT_TOKEN = 0.000_001_5
"""CPU time for counting one token of a prompt without a cache, likewise."""
GATEWAY_SECONDS_PER_OUTPUT_TOKEN = 0.000_09
"""CPU time for relaying one token of an answer, likewise."""


@dataclass(frozen=True, slots=True)
class Objectives:
    """What makes a request good; all in seconds.

    Args:
        tpot_seconds: most mean time per output token after the first, by lane. Overflow has one too: a policy without
            lanes serves what ours refuses.
        shortest_ttft_seconds: least TTFT objective.
        idle_ttft_multiple: multiple of a request's TTFT on an idle replica.
    """

    tpot_seconds: Mapping[Lane, float]
    shortest_ttft_seconds: float = SHORTEST_TTFT_OBJECTIVE_SECONDS
    idle_ttft_multiple: float = IDLE_TTFT_MULTIPLE

    def ttft_seconds(self, idle_ttft_seconds: float) -> float:
        """Return the most time to first token of a request that has this one on an idle replica."""
        return max(self.shortest_ttft_seconds, self.idle_ttft_multiple * idle_ttft_seconds)


@dataclass(frozen=True, slots=True)
class Setting:
    """The stage of one run. Models and traced requests change while it runs, so a second run needs a second setting.

    Args:
        policy: the operator's numbers.
        specs: the replicas as admission sees them, in the order in which they come up.
        models: the replicas themselves, by name. A gate of the real world may not look; an oracle may.
        parameters: what all replicas are, and what `build_model` makes another of.
        build_model: returns one more idle replica, for what a request would take alone.
        objectives: what makes a request good.
        model: the model that every request of the trace asks for.
        default_tenant: tenant of a request whose own is not in the policy.
        gateway_seconds_per_request: time of the gateway's one process for each try of a request.
        gateway_seconds_per_input_token: the same for each token of its prompt.
        gateway_seconds_per_output_token: the same for each token of an answer, which holds up whoever arrives then.
        retry_jitter_ratio: a Retry-After is drawn between the estimate and (1 + this) times it.
        max_retry_after_seconds: longer waits are told with `x-should-retry: false`.
        warnings: what an operator should know about these numbers, one sentence each.
        traced: what the trace holds of each request and sequence that lives, by key; the world keeps it.
    """

    policy: AdmissionPolicy
    specs: tuple[ReplicaSpec, ...]
    models: Mapping[str, ReplicaModel]
    parameters: Parameters
    build_model: Callable[[], ReplicaModel]
    objectives: Objectives
    model: str
    default_tenant: str
    gateway_seconds_per_request: float = GATEWAY_SECONDS_PER_REQUEST
    gateway_seconds_per_input_token: float = GATEWAY_SECONDS_PER_INPUT_TOKEN
    gateway_seconds_per_output_token: float = GATEWAY_SECONDS_PER_OUTPUT_TOKEN
    retry_jitter_ratio: float = 1.0
    max_retry_after_seconds: float = 60.0
    warnings: tuple[str, ...] = ()
    traced: dict[int, TracedRequest] = field(default_factory=dict)

    def truth(self, key: int) -> TracedRequest:
        """Return what the trace holds of a live request: for an oracle, since it tells the true length.

        Its `at_seconds` is when it first came, however often it has been tried since.
        `key` is that of the request or of one of its sequences. Sequences of a request with one prompt and one copy
        have the key of the request.

        Raises:
            KeyError: no request or sequence of that key lives.
        """
        return self.traced[key]
