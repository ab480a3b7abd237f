import math
from typing import Any

import pytest

from llmshed.simulation.attention import Attention
from llmshed.simulation.cost import StepTimes, StepWork
from llmshed.simulation.parameters import ReplicaParameters

WHOLE: dict[str, Any] = {"max_batch_prefill_tokens": 8191}
"""A step budget for whole prompts."""


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
        ({"chunked_prefill": False}, "must be at least max_input_tokens 8191 for TGI 3.3.5 as set up here"),
        ({"speculate": 2}, "must be at least max_input_tokens 8191"),
        ({"attention": Attention.PAGED, "block_tokens": 16}, "must be at least max_input_tokens 8191"),
        ({"attention": Attention.PAGED}, "block_tokens 1 does not go with attention paged, whose blocks have 16"),
        ({"attention": Attention.FLASHINFER, "block_tokens": 256}, "attention flashinfer, whose blocks have 1"),
        ({**WHOLE, "attention": Attention.PAGED, "block_tokens": 16, "prefix_caching": True}, "attention paged"),
        ({**WHOLE, "version": "2.2.0", "prefix_caching": True}, "not known to TGI 2.2.0: 2.3.0 and later"),
        ({"max_batch_size": 0}, "max_batch_size is 0; accepted are 1 to"),
        ({"speculate": -1}, "speculate is -1"),
        ({"speculate": 65}, "speculate is 65; accepted are 0 to 64"),
        ({**WHOLE, "speculate": 2, "accepted_tokens": 2.5}, "accepted_tokens is 2.5; accepted are 0 to 2"),
        ({"accepted_tokens": 0.1}, "accepted_tokens is 0.1; accepted are 0 to 0"),
        ({**WHOLE, "speculate": 2, "accepted_tokens": math.nan}, "accepted_tokens is nan"),
    ],
)
def test_numbers_that_contradict_each_other_are_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ReplicaParameters(**changes)


def test_the_smallest_cache_that_holds_one_maximal_request_is_accepted() -> None:
    assert ReplicaParameters(kv_tokens=8192).usable_blocks == 8191


@pytest.mark.parametrize(
    ("changes", "in_pieces"),
    [
        ({}, True),
        ({"version": "3.0.0"}, True),
        ({"version": "2.4.0"}, False),
        ({"chunked_prefill": False}, False),
        ({"speculate": 2}, False),
        ({"attention": Attention.PAGED, "block_tokens": 16}, False),
        ({"attention": Attention.FLASHDECODING, "block_tokens": 256}, True),
        ({"attention": Attention.FLASHDECODING_IPEX, "block_tokens": 64}, True),
        ({"block_tokens": 16}, True),
    ],
)
def test_prompts_are_prefilled_in_pieces_where_tgi_does_it(changes: dict[str, Any], *, in_pieces: bool) -> None:
    assert ReplicaParameters(**{**WHOLE, **changes}).prefills_in_pieces is in_pieces


@pytest.mark.parametrize("version", ["2.3.0", "2.4.1", "3.0.0", "3.3.5"])
def test_a_prefix_cache_is_there_when_asked_for(version: str) -> None:
    assert ReplicaParameters(**WHOLE, version=version, prefix_caching=True).prefix_caching
    assert not ReplicaParameters(**WHOLE, version=version).prefix_caching


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf])
def test_a_step_must_take_a_finite_time(seconds: float) -> None:
    with pytest.raises(ValueError, match="step_seconds"):
        StepTimes(step_seconds=seconds)
