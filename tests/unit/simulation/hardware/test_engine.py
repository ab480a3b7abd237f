"""What the engines choose by themselves, from their published source."""

from typing import Any

import pytest

from llmshed.simulation.attention import Attention
from llmshed.simulation.building import Parameters
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.hardware.engine import engine_parameters
from llmshed.simulation.hardware.sections import Engine, Gpu, Model
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.vllm.parameters import SchedulingPolicy, VllmParameters

MODEL = Model(
    id="llama-3-8b",
    parameters=8_030_261_248,
    layers=32,
    hidden_size=4096,
    attention_heads=32,
    kv_heads=8,
    head_size=128,
    vocabulary_size=128_256,
    context_tokens=8192,
)
SMALL = Gpu(name="A10G", memory_bytes=24 * 10**9, bandwidth_bytes_per_second=6e11, flops_per_second=70e12)
LARGE = Gpu(name="H100", memory_bytes=80 * 2**30, bandwidth_bytes_per_second=3e12, flops_per_second=989e12)


def tgi(kv_tokens: int = 100_000, model: Model = MODEL, gpu: Gpu = SMALL, **given: Any) -> ReplicaParameters:
    parameters = built(Engine(mode="tgi", **given), model, gpu, kv_tokens)
    assert isinstance(parameters, ReplicaParameters)
    return parameters


def vllm(kv_tokens: int = 100_000, gpu: Gpu = SMALL, **given: Any) -> VllmParameters:
    parameters = built(Engine(mode="vllm", **given), MODEL, gpu, kv_tokens)
    assert isinstance(parameters, VllmParameters)
    return parameters


def built(engine: Engine, model: Model, gpu: Gpu, kv_tokens: int) -> Parameters:
    return engine_parameters(engine, model, gpu, kv_tokens, StepTimes())


def test_the_longest_sequence_is_the_context_and_the_longest_prompt_one_token_less() -> None:
    parameters = tgi()
    assert (parameters.max_total_tokens, parameters.max_input_tokens) == (8192, 8191)


def test_a_small_cache_bounds_the_longest_sequence_beside_the_engines_own_block() -> None:
    assert tgi(kv_tokens=5000).max_total_tokens == 4999
    # 312 blocks of 16, one of them the engine's own.
    assert tgi(kv_tokens=5000, attention="paged", max_batch_prefill_tokens=4976).max_total_tokens == 311 * 16
    assert vllm(kv_tokens=5000).max_model_len == 311 * 16


def test_the_step_budget_is_one_second_of_peak_arithmetic_up_to_the_context() -> None:
    # 70e12 operations a second by 2 x 6,979,588,096.
    assert tgi().max_batch_prefill_tokens == 5014
    assert tgi(gpu=LARGE).max_batch_prefill_tokens == 8192
    assert tgi(max_batch_prefill_tokens=777).max_batch_prefill_tokens == 777


def test_a_budget_too_small_to_be_right_gives_way_to_the_fixed_one() -> None:
    slow = SMALL.model_copy(update={"flops_per_second": 1e12})
    assert tgi(gpu=slow).max_batch_prefill_tokens == 4096


@pytest.mark.parametrize("given", [{"chunked_prefill": False}, {"speculate": 2}, {"attention": "paged"}])
def test_without_chunked_prefill_the_longest_prompt_fits_a_step(given: dict[str, Any]) -> None:
    parameters = tgi(**given)
    assert not parameters.prefills_in_pieces
    assert parameters.max_batch_prefill_tokens == parameters.max_input_tokens


def test_before_3_0_the_budget_is_fixed_and_nothing_is_cached() -> None:
    parameters = tgi(version="2.4.0", max_total_tokens=2048)
    assert (parameters.max_batch_prefill_tokens, parameters.prefix_caching) == (4096, False)


def test_prompts_are_cached_from_3_0_with_flashinfer_only() -> None:
    assert (tgi().prefix_caching, tgi().attention, tgi().block_tokens) == (True, Attention.FLASHINFER, 1)
    assert not tgi(attention="flashdecoding").prefix_caching
    assert tgi(attention="flashdecoding").block_tokens == 256
    assert not tgi(prefix_caching=False).prefix_caching


def test_every_limit_of_tgi_is_handed_on() -> None:
    limits: dict[str, Any] = {
        "max_concurrent_requests": 7,
        "max_input_tokens": 100,
        "max_total_tokens": 200,
        "max_batch_size": 5,
        "max_client_batch_size": 6,
        "max_best_of": 3,
        "max_stop_sequences": 9,
        "max_waiting_steps": 11,
        "speculate": 3,
        "accepted_tokens": 1.5,
    }
    parameters = tgi(**limits)
    assert {name: getattr(parameters, name) for name in limits} == limits


def test_large_gpus_get_larger_defaults_from_vllm_but_not_the_a100() -> None:
    a100 = LARGE.model_copy(update={"name": "NVIDIA A100-SXM4-80GB"})
    assert [(p.max_num_seqs, p.max_num_batched_tokens) for p in (vllm(), vllm(gpu=LARGE), vllm(gpu=a100))] == [
        (256, 2048),
        (1024, 8192),
        (256, 2048),
    ]


def test_a_step_of_vllm_has_a_token_for_every_seat() -> None:
    assert vllm(max_num_seqs=3000).max_num_batched_tokens == 3000
    assert vllm(chunked_prefill=False).max_num_batched_tokens == 8192


def test_every_limit_of_vllm_is_handed_on() -> None:
    limits: dict[str, Any] = {
        "block_tokens": 32,
        "watermark_ratio": 0.01,
        "long_prefill_token_threshold": 99,
        "policy": "priority",
        "scheduler_reserve_full_isl": False,
        "max_num_queued_reqs": 4,
        "max_num_queued_tokens": 5,
        "prefix_caching": False,
    }
    parameters = vllm(**limits)
    assert {name: getattr(parameters, name) for name in limits} == limits
    assert parameters.policy is SchedulingPolicy.PRIORITY
    assert vllm().policy is SchedulingPolicy.FCFS


def test_limits_that_contradict_each_other_are_told_as_the_scheduler_tells_them() -> None:
    with pytest.raises(ValueError, match="max_input_tokens 500 must be below max_total_tokens 400"):
        tgi(max_input_tokens=500, max_total_tokens=400)
    with pytest.raises(ValueError, match=r"1.4.0 to 3.x"):
        tgi(version="9.0.0")
