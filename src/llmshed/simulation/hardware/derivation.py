"""What a step takes and what KV fits, worked out from the sections of a replica file.

The equations and their symbols stand in the package's docstring; the names here follow them.
"""

from dataclasses import dataclass
from math import floor

from llmshed.simulation.cost import StepTimes
from llmshed.simulation.hardware.sections import Efficiency, Gpu, Model

ALL_REDUCES_A_LAYER = 2
"""One after attention, one after the feed-forward part (Shoeybi et al., Megatron-LM, arXiv 1909.08053)."""
ACTIVATION_BYTES = 2
"""Bytes of one activation between layers: fp16 or bf16, also where weights are kept in fewer."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """What follows from a model, a GPU and its efficiency, to be shown to whoever checks a file.

    Args:
        body_parameters: parameters that every token is multiplied with.
        weight_bytes: weights on each GPU.
        kv_bytes_per_token: KV of one token on each GPU.
        kv_memory_bytes: memory left for KV on each GPU; negative when the model does not fit.
        kv_tokens: tokens that fit into it; 0 when the model does not fit.
        step_times: coefficients of the step-time model.
    """

    body_parameters: int
    weight_bytes: float
    kv_bytes_per_token: float
    kv_memory_bytes: float
    kv_tokens: int
    step_times: StepTimes


def derive(model: Model, gpu: Gpu, efficiency: Efficiency) -> Derivation:
    """Work out step times and the size of the KV cache.

    Raises:
        ValueError: a coefficient leaves the range of the step-time model; the text names it and the range.
    """
    kv_bytes = kv_bytes_per_token(model, gpu)
    weight_bytes = model.parameters * model.weight_bytes / gpu.count
    room = gpu.memory_bytes * efficiency.memory_ratio - weight_bytes - efficiency.reserve_bytes
    return Derivation(
        body_parameters=body_parameters(model),
        weight_bytes=weight_bytes,
        kv_bytes_per_token=kv_bytes,
        kv_memory_bytes=room,
        kv_tokens=max(floor(room / kv_bytes), 0),
        step_times=step_times(model, gpu, efficiency),
    )


def table_parameters(model: Model) -> int:
    """Return the parameters of one embedding table."""
    return model.vocabulary_size * model.hidden_size


def body_parameters(model: Model) -> int:
    """Return the parameters outside the embedding tables, which every token is multiplied with."""
    return model.parameters - table_parameters(model) * (1 if model.tied_embeddings else 2)


def kv_bytes_per_token(model: Model, gpu: Gpu) -> float:
    """Return the KV bytes of one token on each GPU; with more GPUs than KV heads, heads are held more than once."""
    heads = max(model.kv_heads / gpu.count, 1)
    return 2 * model.layers * heads * model.head_size * model.kv_bytes


def step_times(model: Model, gpu: Gpu, efficiency: Efficiency) -> StepTimes:
    """Return the coefficients of the step-time model.

    Raises:
        ValueError: one leaves its range; the text names it and the range.
    """
    body, table = body_parameters(model), table_parameters(model)
    flops = gpu.flops_per_second * efficiency.flops_ratio * gpu.count
    bandwidth = gpu.bandwidth_bytes_per_second * efficiency.bandwidth_ratio
    return StepTimes(
        step_seconds=efficiency.step_seconds + _link_latency_seconds(model, gpu),
        seconds_per_prefill_token=2 * body / flops,
        seconds_per_decoding_sequence=2 * (body + table) / flops,
        weights_seconds=(body + table) * model.weight_bytes / gpu.count / bandwidth,
        seconds_per_attention_pair=4 * model.layers * model.attention_heads * model.head_size / flops,
        seconds_per_resident_token=kv_bytes_per_token(model, gpu) / bandwidth,
        seconds_per_sequence=efficiency.sequence_seconds,
        seconds_per_linked_token=_linked_seconds(model, gpu),
    )


def _link_latency_seconds(model: Model, gpu: Gpu) -> float:
    return ALL_REDUCES_A_LAYER * model.layers * gpu.link_latency_seconds if gpu.count > 1 else 0.0


def _linked_seconds(model: Model, gpu: Gpu) -> float:
    if gpu.link_bytes_per_second is None or gpu.count == 1:
        return 0.0
    sent = 2 * (gpu.count - 1) / gpu.count * model.hidden_size * ACTIVATION_BYTES
    return ALL_REDUCES_A_LAYER * model.layers * sent / gpu.link_bytes_per_second
