"""Parameters of a simulated vLLM replica: what vLLM refuses at its start is refused, by name."""

from dataclasses import replace
from math import nan
from typing import Any

import pytest

from llmshed.simulation.vllm.parameters import SchedulingPolicy, VllmParameters

DEFAULT = VllmParameters()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_num_seqs": 0}, ["max_num_seqs", "1 to"]),
        ({"max_num_batched_tokens": 0}, ["max_num_batched_tokens", "1 to"]),
        ({"max_model_len": 1}, ["max_model_len", "2 to"]),
        ({"kv_tokens": 1}, ["kv_tokens", "2 to"]),
        ({"block_tokens": 0}, ["block_tokens", "1 to 4096"]),
        ({"watermark_ratio": -0.1}, ["watermark_ratio", "0 to 1"]),
        ({"watermark_ratio": nan}, ["watermark_ratio", "0 to 1"]),
        ({"long_prefill_token_threshold": -1}, ["long_prefill_token_threshold", "0 to"]),
        ({"max_num_queued_reqs": 0}, ["max_num_queued_reqs", "1 to"]),
        ({"max_num_queued_tokens": 0}, ["max_num_queued_tokens", "1 to"]),
        ({"policy": "lifo"}, ["policy", "'lifo'", "fcfs, priority"]),
        ({"max_num_batched_tokens": 255}, ["max_num_batched_tokens 255", "max_num_seqs 256"]),
        ({"chunked_prefill": False}, ["max_num_batched_tokens 2048", "max_model_len 8192", "chunked prefill"]),
        ({"kv_tokens": 8192}, ["max_model_len 8192", "kv_tokens 8192", "blocks of 16"]),
    ],
)
def test_what_cannot_be_is_refused_with_the_name_and_what_is_accepted(change: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ValueError, match=words[0].split()[0]) as refused:
        replace(DEFAULT, **change)
    assert all(word in str(refused.value) for word in words)


def test_one_block_is_the_engines_own() -> None:
    assert replace(DEFAULT, kv_tokens=8192 + 16).usable_blocks == 512


def test_the_longest_sequence_needs_room_for_all_but_its_last_token() -> None:
    # 512 tokens in blocks of 511: the 512th token is never computed.
    parameters = VllmParameters(max_model_len=512, kv_tokens=2 * 511, block_tokens=511)
    assert parameters.usable_blocks == 1


def test_the_watermark_is_a_share_of_all_blocks_rounded_down() -> None:
    # 49,152 / 16 = 3,072 blocks; a hundredth of them is 30.72.
    assert replace(DEFAULT, watermark_ratio=0.01).watermark_blocks == 30


def test_a_policy_may_be_given_as_its_word() -> None:
    assert SchedulingPolicy("priority") is SchedulingPolicy.PRIORITY
