"""Step times and KV against sums worked out apart from the code, and against published measurements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.simulation.cost import StepWork
from llmshed.simulation.hardware.derivation import body_parameters, derive, kv_bytes_per_token
from llmshed.simulation.hardware.sections import Efficiency, Gpu, Model

LLAMA_2_7B = Model(
    id="llama-2-7b",
    parameters=6_738_415_616,
    layers=32,
    hidden_size=4096,
    attention_heads=32,
    kv_heads=32,
    head_size=128,
    vocabulary_size=32_000,
    context_tokens=4096,
)
LLAMA_2_70B = Model(
    id="llama-2-70b",
    parameters=68_976_648_192,
    layers=80,
    hidden_size=8192,
    attention_heads=64,
    kv_heads=8,
    head_size=128,
    vocabulary_size=32_000,
    context_tokens=4096,
)
A100 = Gpu(name="A100", memory_bytes=80 * 2**30, bandwidth_bytes_per_second=2.039e12, flops_per_second=312e12)
FOUR_A100 = A100.model_copy(update={"count": 4, "link_bytes_per_second": 300e9})
FITTED = Efficiency(flops_ratio=0.69, bandwidth_ratio=0.89, memory_ratio=0.9, reserve_bytes=0, step_seconds=0.0015)


def llama_parameters(layers: int, hidden: int, wide: int, kv: int, vocabulary: int, tables: int) -> int:
    """Sum the matrices of a Llama: query and output, key and value, three of the feed-forward part, two norms."""
    layer = 2 * hidden * hidden + 2 * hidden * kv + 3 * hidden * wide + 2 * hidden
    return layers * layer + hidden + tables * vocabulary * hidden


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ((32, 4096, 11_008, 4096, 32_000, 2), 6_738_415_616),
        ((32, 4096, 14_336, 1024, 128_256, 2), 8_030_261_248),
        ((80, 8192, 28_672, 1024, 128_256, 2), 70_553_706_496),
        ((16, 2048, 8192, 512, 128_256, 1), 1_235_814_400),
    ],
)
def test_the_parameters_of_the_shipped_files_are_the_sums_of_their_shapes(
    shape: tuple[int, int, int, int, int, int], told: int
) -> None:
    assert llama_parameters(*shape) == told


def test_the_body_leaves_out_every_embedding_table() -> None:
    assert body_parameters(LLAMA_2_7B) == 6_738_415_616 - 2 * 131_072_000
    assert body_parameters(LLAMA_2_7B.model_copy(update={"tied_embeddings": True})) == 6_738_415_616 - 131_072_000


@pytest.mark.parametrize(
    ("kv_heads", "gpus", "size"),
    # 0.5 MiB a token is the figure of the PagedAttention paper's kind of model, 2 x 32 layers x 4,096 x 2 bytes.
    [(32, 1, 524_288), (8, 1, 131_072), (8, 4, 32_768), (8, 8, 16_384), (8, 16, 16_384)],
)
def test_kv_of_a_token_is_shared_until_each_gpu_holds_one_head(kv_heads: int, gpus: int, size: int) -> None:
    model = LLAMA_2_7B.model_copy(update={"kv_heads": kv_heads})
    assert kv_bytes_per_token(model, A100.model_copy(update={"count": gpus})) == size


def test_what_weights_and_reserve_leave_is_filled_with_whole_tokens() -> None:
    gpu = A100.model_copy(update={"memory_bytes": 20_000_000_000})
    derivation = derive(LLAMA_2_7B, gpu, FITTED.model_copy(update={"reserve_bytes": 1_000_000_000}))
    # 18,000,000,000 - 13,476,831,232 - 1,000,000,000 = 3,523,168,768 bytes; by 524,288 bytes 6,719.9
    assert derivation.weight_bytes == 13_476_831_232
    assert derivation.kv_memory_bytes == 3_523_168_768
    assert derivation.kv_tokens == 6_719


def test_a_model_that_does_not_fit_leaves_no_kv() -> None:
    derivation = derive(LLAMA_2_70B, A100, FITTED)
    assert derivation.kv_memory_bytes < 0
    assert derivation.kv_tokens == 0


def test_each_coefficient_of_one_gpu_is_its_operations_or_bytes_by_what_is_reached() -> None:
    times = derive(LLAMA_2_7B, A100, FITTED).step_times
    # 6,476,271,616 parameters in the body, 6,607,343,616 with one table.
    assert times.seconds_per_prefill_token == pytest.approx(12.952543232e9 / (312e12 * 0.69))
    assert times.seconds_per_decoding_sequence == pytest.approx(13.214687232e9 / (312e12 * 0.69))
    assert times.weights_seconds == pytest.approx(13.214687232e9 / (2.039e12 * 0.89))
    assert times.seconds_per_attention_pair == pytest.approx(524_288 / (312e12 * 0.69))
    assert times.seconds_per_resident_token == pytest.approx(524_288 / (2.039e12 * 0.89))
    assert (times.step_seconds, times.seconds_per_sequence, times.seconds_per_linked_token) == (0.0015, 0.0, 0.0)


def test_gpus_share_weights_and_arithmetic_and_add_their_link() -> None:
    gpu = FOUR_A100.model_copy(update={"link_latency_seconds": 0.000_01})
    four, one = derive(LLAMA_2_70B, gpu, FITTED).step_times, derive(LLAMA_2_70B, A100, FITTED).step_times
    assert four.seconds_per_prefill_token == pytest.approx(one.seconds_per_prefill_token / 4)
    assert four.weights_seconds == pytest.approx(one.weights_seconds / 4)
    assert four.seconds_per_resident_token == pytest.approx(one.seconds_per_resident_token / 4)
    # 160 all-reduces of 8,192 fp16 values, each sent one and a half times.
    assert four.seconds_per_linked_token == pytest.approx(160 * 1.5 * 16_384 / 300e9)
    assert four.step_seconds == pytest.approx(0.0015 + 160 * 0.000_01)


@pytest.mark.parametrize(
    ("model", "gpu", "tokens", "seconds"),
    # github.com/NVIDIA/TensorRT-LLM at 138f96d, docs/source/performance.md, first token latency, A100 (FP16)
    [
        (LLAMA_2_7B, A100, 128, 0.016),
        (LLAMA_2_7B, A100, 2048, 0.133),
        (LLAMA_2_70B, FOUR_A100, 128, 0.047),
        (LLAMA_2_70B, FOUR_A100, 2048, 0.377),
    ],
)
def test_published_first_tokens_on_a100s_are_met_within_a_tenth(
    model: Model, gpu: Gpu, tokens: int, seconds: float
) -> None:
    times = derive(model, gpu, FITTED).step_times
    work = StepWork(prefill_tokens=tokens, attention_pairs=tokens * (tokens + 1) // 2)
    assert times.seconds(work) == pytest.approx(seconds, rel=0.1)


@given(
    memory=st.integers(10**9, 10**12),
    share=st.floats(0.1, 1.0),
    reserve=st.integers(0, 10**10),
    kv_heads=st.sampled_from([1, 2, 4, 8, 16, 32]),
    gpus=st.sampled_from([1, 2, 4, 8]),
)
def test_what_is_held_never_exceeds_what_the_engine_takes(
    memory: int, share: float, reserve: int, kv_heads: int, gpus: int
) -> None:
    model = LLAMA_2_7B.model_copy(update={"kv_heads": kv_heads})
    gpu = A100.model_copy(update={"memory_bytes": memory, "count": gpus})
    derivation = derive(model, gpu, FITTED.model_copy(update={"memory_ratio": share, "reserve_bytes": reserve}))
    held = derivation.kv_tokens * derivation.kv_bytes_per_token
    taken = held + derivation.weight_bytes + reserve
    assert derivation.kv_tokens == 0 or taken <= memory * share
    assert derivation.kv_tokens == 0 or taken + derivation.kv_bytes_per_token > memory * share
