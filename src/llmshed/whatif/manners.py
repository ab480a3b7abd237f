"""What a simulated engine shows of itself beside its tokens: the limits that it tells, and how it refuses."""

from dataclasses import replace
from typing import assert_never

from llmshed.admission.policy import ReplicaSpec
from llmshed.admission.settings import EngineLimits, EngineManners, spec_warnings
from llmshed.profile import Profile
from llmshed.simulation.building import Parameters
from llmshed.simulation.parameters import CHUNK_TOKENS, ReplicaParameters
from llmshed.simulation.versions import Chunking, parse_version
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.whatif.replicas import EngineRefusal

_LAST_TO_TELL_KV = (2, 3, 0)
"""First version of TGI whose `/info` does not tell `max_batch_total_tokens`."""


def engine_name(parameters: Parameters) -> str:
    """Return which engine it is, in words."""
    match parameters:
        case ReplicaParameters():
            return f"TGI {parameters.version}"
        case VllmParameters():
            return "vLLM"
        case _:
            assert_never(parameters)


def engine_limits(parameters: Parameters) -> EngineLimits:
    """Return what is known of the engine.

    TGI's `/info` tells its permits and, in old versions, the size of its KV cache. vLLM's metrics tell that size
    (`vllm:cache_config_info`). It refuses nothing for want of a seat, so its seats are where more sequences would only
    wait, unless its own limit on requests comes first.
    """
    match parameters:
        case ReplicaParameters():
            tells_kv = parse_version(parameters.version) < _LAST_TO_TELL_KV
            return EngineLimits(
                max_concurrent_requests=parameters.max_concurrent_requests,
                max_input_tokens=parameters.max_input_tokens,
                max_total_tokens=parameters.max_total_tokens,
                max_batch_total_tokens=parameters.kv_tokens if tells_kv else None,
            )
        case VllmParameters():
            return EngineLimits(
                max_concurrent_requests=min(
                    parameters.max_num_seqs, parameters.max_num_queued_reqs or parameters.max_num_seqs
                ),
                max_input_tokens=parameters.max_model_len - 1,
                max_total_tokens=parameters.max_model_len,
                max_batch_total_tokens=parameters.kv_tokens,
            )
        case _:
            assert_never(parameters)


def engine_manners(parameters: Parameters) -> EngineManners:
    """Return how the engine behaves beyond what it tells: TGI has chunks, and starts one prompt at a time."""
    match parameters:
        case ReplicaParameters():
            in_chunks = parameters.rules.chunking is Chunking.ALWAYS
            return EngineManners(CHUNK_TOKENS if in_chunks else 0, prefill_blocks_starts=True)
        case VllmParameters():
            return EngineManners()
        case _:
            assert_never(parameters)


def warnings_of(spec: ReplicaSpec, parameters: Parameters, profile: Profile | None) -> tuple[str, ...]:
    """Return what an operator should know about the numbers of a replica before this engine, one sentence each."""
    limits = engine_limits(parameters)
    match parameters:
        case ReplicaParameters():
            return spec_warnings(spec, limits, profile) + _ceiling(spec, parameters)
        case VllmParameters():
            return (
                *spec_warnings(spec, replace(limits, max_concurrent_requests=None), profile),
                *_ceiling(spec, parameters),
                *_cap(spec, parameters),
            )
        case _:
            assert_never(parameters)


def refusal_status(parameters: Parameters, refusal: EngineRefusal, *, streamed: bool) -> int:
    """Return the HTTP status that a client sees of the engine's own refusal; neither engine sends a Retry-After.

    TGI gives a stream its status before it has looked at the request, so there a refusal is an event under 200. vLLM
    looks first, and once more after the headers: only a crowd that comes within a few milliseconds gets events.
    """
    match parameters:
        case ReplicaParameters():
            if streamed:
                return 200
            return 429 if refusal is EngineRefusal.OVERLOADED else 422
        case VllmParameters():
            return 503 if refusal is EngineRefusal.OVERLOADED else 400
        case _:
            assert_never(parameters)


def _cap(spec: ReplicaSpec, parameters: VllmParameters) -> tuple[str, ...]:
    """Say when the hard cap lets in more than the engine takes, or runs at once."""
    cap, queued, seats = spec.budget.hard_cap_sequences, parameters.max_num_queued_reqs, parameters.max_num_seqs
    told = f"the hard cap of replica {spec.name} is {cap:,} sequences, its engine's"
    if queued is not None and cap > queued:
        return (f"{told} max_num_queued_reqs is {queued:,}: the engine would refuse what the gateway admitted",)
    if cap > seats:
        return (f"{told} max_num_seqs is {seats:,}: the others would wait in the engine",)
    return ()


def _ceiling(spec: ReplicaSpec, parameters: Parameters) -> tuple[str, ...]:
    """Say when the gross ceiling is more than the KV cache holds, or less than half of it."""
    gross, held = spec.budget.gross_ceiling_tokens, parameters.kv_tokens
    told = f"the gross ceiling of replica {spec.name} is {gross:,} tokens, the KV cache of its engine holds {held:,}"
    if gross > held:
        return (f"{told}: what is reserved beyond that may wait in the engine",)
    if 2 * gross < held:
        return (f"{told}: most of it is never lent",)
    return ()
