import math
from typing import Any

import pytest

from llmshed.simulation.cost import StepTimes, StepWork
from llmshed.simulation.parameters import ReplicaParameters


def test_a_step_takes_its_fixed_part_its_prompt_tokens_and_its_decoding_sequences() -> None:
    times = StepTimes(step_seconds=0.02, seconds_per_prefill_token=0.0001, seconds_per_decoding_sequence=0.001)
    assert times.seconds(StepWork()) == pytest.approx(0.02)
    assert times.seconds(StepWork(prefill_tokens=4096, decoding_sequences=7)) == pytest.approx(0.02 + 0.4096 + 0.007)


def test_the_engine_keeps_one_block() -> None:
    assert ReplicaParameters(kv_tokens=49_152).usable_blocks == 49_151
    assert ReplicaParameters(kv_tokens=49_152, block_tokens=256).usable_blocks == 191


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"max_concurrent_requests": 0}, "max_concurrent_requests is 0; accepted are 1 to"),
        ({"max_total_tokens": 1}, "max_total_tokens is 1"),
        ({"max_input_tokens": 8192}, "must be below max_total_tokens 8192"),
        ({"kv_tokens": 8191}, "does not fit kv_tokens 8191"),
        ({"kv_tokens": 8192 + 255, "block_tokens": 256}, "does not fit kv_tokens"),
        ({"version": "2.4.0"}, "must be at least max_input_tokens 8191 for TGI 2.4.0"),
        ({"version": "5.0.0"}, "TGI version '5.0.0'"),
    ],
)
def test_numbers_that_contradict_each_other_are_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ReplicaParameters(**changes)


def test_the_smallest_cache_that_holds_one_maximal_request_is_accepted() -> None:
    assert ReplicaParameters(kv_tokens=8192).usable_blocks == 8191


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf])
def test_a_step_must_take_a_finite_time(seconds: float) -> None:
    with pytest.raises(ValueError, match="step_seconds"):
        StepTimes(step_seconds=seconds)
