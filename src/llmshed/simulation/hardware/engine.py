"""The limits of the engine, with what a file leaves out chosen as the engine itself does."""

from dataclasses import fields
from typing import Any

from llmshed.simulation.attention import Attention
from llmshed.simulation.building import Parameters
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.hardware.derivation import body_parameters
from llmshed.simulation.hardware.sections import Engine, Gpu, Model
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.versions import parse_version
from llmshed.simulation.vllm.parameters import SchedulingPolicy, VllmParameters

_SETTINGS = tuple(name for name in Engine.model_fields if name != "mode")
_TGI = {field.name for field in fields(ReplicaParameters)}
_VLLM = {field.name for field in fields(VllmParameters)}
ONLY_TGI = tuple(name for name in _SETTINGS if name not in _VLLM)
"""Settings that mean nothing to vLLM."""
ONLY_VLLM = tuple(name for name in _SETTINGS if name not in _TGI)
"""Settings that mean nothing to TGI."""

TGI_VERSION = "3.3.5"
TGI_PREFILL_TOKENS = 4096
"""TGI's step budget before 3.0, and when nothing is known of the GPU."""
LEAST_COMPUTED_PREFILL_TOKENS = 100
"""A computed step budget up to this is taken for an error of the computation by TGI's launcher."""
LARGE_GPU_BYTES = 70 * 2**30
"""From this memory on, A100s excepted, vLLM chooses larger defaults (`get_batch_defaults` of engine/arg_utils.py)."""


def engine_parameters(engine: Engine, model: Model, gpu: Gpu, kv_tokens: int, times: StepTimes) -> Parameters:
    """Return the parameters of the scheduler that the file asks for.

    Raises:
        ValueError: the version is not known, or limits contradict each other or the KV cache; the text names both.
    """
    given = engine.model_dump(exclude={"mode"}, exclude_none=True)
    if engine.mode == "tgi":
        return _tgi(given, model, gpu, kv_tokens, times)
    return _vllm(given, model, gpu, kv_tokens, times)


def _tgi(given: dict[str, Any], model: Model, gpu: Gpu, kv_tokens: int, times: StepTimes) -> ReplicaParameters:
    """Follow launcher/src/main.rs and the warm-up of backends/v3 at version 3.3.

    The longest sequence is the context or what the KV cache holds, the longest prompt one token less; kernels are
    flashinfer's, with which prompts are cached from 3.0 on; the step budget see `_tgi_prefill_tokens`.
    """
    given = {"version": TGI_VERSION, "attention": Attention.FLASHINFER.value} | given
    attention = Attention(given["attention"])
    modern = parse_version(given["version"]) >= (3, 0, 0)
    block = given.setdefault("block_tokens", attention.block_tokens)
    given.setdefault("prefix_caching", modern and attention is Attention.FLASHINFER)
    longest = given.setdefault("max_total_tokens", _longest(model, kv_tokens, block))
    longest_input = given.setdefault("max_input_tokens", longest - 1)
    in_pieces = modern and given.get("chunked_prefill", True) and not given.get("speculate")
    in_pieces = in_pieces and attention is not Attention.PAGED
    budget = _tgi_prefill_tokens(model, gpu) if modern else TGI_PREFILL_TOKENS
    given.setdefault("max_batch_prefill_tokens", budget if in_pieces else max(budget, longest_input))
    return ReplicaParameters(**given | {"attention": attention}, kv_tokens=kv_tokens, step_times=times)


def _vllm(given: dict[str, Any], model: Model, gpu: Gpu, kv_tokens: int, times: StepTimes) -> VllmParameters:
    large = gpu.memory_bytes >= LARGE_GPU_BYTES and "a100" not in gpu.name.lower()
    block = given.setdefault("block_tokens", 16)
    longest = given.setdefault("max_model_len", _longest(model, kv_tokens, block))
    seats = given.setdefault("max_num_seqs", 1024 if large else 256)
    budget = max(8192 if large else 2048, seats)
    given.setdefault("max_num_batched_tokens", budget if given.get("chunked_prefill", True) else max(budget, longest))
    policy = SchedulingPolicy(given.pop("policy", SchedulingPolicy.FCFS))
    return VllmParameters(**given, policy=policy, kv_tokens=kv_tokens, step_times=times)


def _longest(model: Model, kv_tokens: int, block_tokens: int) -> int:
    """Return the longest sequence: the context, or what the KV cache holds beside the engine's own block."""
    return max(min(model.context_tokens, (kv_tokens // block_tokens - 1) * block_tokens), 2)


def _tgi_prefill_tokens(model: Model, gpu: Gpu) -> int:
    """Return the step budget that TGI's launcher computes: the tokens of one second at peak, at most the context.

    `compute_optimal` divides the operations a second of all GPUs by those of one token.
    """
    computed = int(gpu.flops_per_second * gpu.count / (2 * body_parameters(model)))
    budget = computed if computed > LEAST_COMPUTED_PREFILL_TOKENS else TGI_PREFILL_TOKENS
    return min(budget, model.context_tokens)
