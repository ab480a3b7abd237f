"""Settings of a replica file that are valid one by one but not together."""

import pytest

from llmshed.errors import ReplicaFileError
from llmshed.simulation.hardware.parsing import parse_replica


def complaints(text: str) -> str:
    with pytest.raises(ReplicaFileError) as refused:
        parse_replica(text, "r.toml")
    return str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            "parameters = 8_030_261_248",
            "parameters = 1_000_000",
            "5: model.parameters: 1000000 leaves nothing beside two embedding tables of 525336576",
        ),
        (
            "flops_per_second = 989.4e12",
            "flops_per_second = 989.4e12\ncount = 4",
            "gpu.link_bytes_per_second: is missing; 4 GPUs need the bandwidth of the link between them",
        ),
        (
            "flops_per_second = 989.4e12",
            "flops_per_second = 989.4e12\ncount = 3\nlink_bytes_per_second = 450e9",
            "gpu.count: 3 does not divide `model.attention_heads`, 32",
        ),
        (
            "flops_per_second = 989.4e12",
            "flops_per_second = 989.4e12\nlink_bytes_per_second = 450e9",
            "gpu.link_bytes_per_second: is set, yet `gpu.count` is 1",
        ),
        (
            "flops_per_second = 989.4e12",
            "flops_per_second = 989.4e12\nlink_latency_seconds = 0.001",
            "gpu.link_latency_seconds: is set, yet `gpu.count` is 1",
        ),
        (
            "memory_bytes = 85_899_345_920",
            "memory_bytes = 16_000_000_000",
            "15: gpu.memory_bytes: 16000000000 is too little: 0.9 of it, less 16060522496 for weights and 2000000000",
        ),
        (
            "flops_per_second = 989.4e12",
            "flops_per_second = 1.0",
            "efficiency: gives step times that are no engine's: seconds_per_prefill_token is 2.32653e+10; accepted are",
        ),
        ('mode = "tgi"', 'mode = "tgi"\nmax_num_seqs = 4', '`engine.mode` is "tgi"'),
        ('mode = "tgi"', 'mode = "vllm"\nmax_best_of = 4', 'engine.max_best_of: is a setting of the mode "tgi"'),
        ('mode = "tgi"', 'mode = "vllm"\nversion = "3.3.5"', 'engine.version: is a setting of the mode "tgi"'),
        (
            'mode = "tgi"',
            'mode = "tgi"\nmax_total_tokens = 9000',
            "engine.max_total_tokens: 9000 is more than `model.context_tokens`, 8192",
        ),
        (
            'mode = "tgi"',
            'mode = "tgi"\nmax_total_tokens = 100\nmax_input_tokens = 100',
            "engine: max_input_tokens 100 must be below max_total_tokens 100",
        ),
        (
            'mode = "tgi"',
            'mode = "vllm"\nmax_num_seqs = 512\nmax_num_batched_tokens = 100',
            "engine: max_num_batched_tokens 100 must be at least max_num_seqs 512",
        ),
        (
            'mode = "tgi"',
            'mode = "tgi"\nmax_total_tokens = 8000\n[measured]\nkv_tokens = 1000',
            "engine: max_total_tokens 8000 does not fit kv_tokens 1000",
        ),
    ],
)
def test_a_contradiction_names_both_sides(replica_text: str, old: str, new: str, complaint: str) -> None:
    assert old in replica_text
    assert complaint in complaints(replica_text.replace(old, new))


def test_tied_tables_count_once(replica_text: str) -> None:
    tied = replica_text.replace("parameters = 8_030_261_248", "parameters = 600_000_000\ntied_embeddings = true")
    assert parse_replica(tied, "r.toml").derivation.body_parameters == 600_000_000 - 525_336_576
    assert "leaves nothing" in complaints(tied.replace("true", "false"))


def test_what_was_set_aside_raises_no_second_complaint(replica_text: str) -> None:
    told = complaints(replica_text.replace("memory_bytes = 85_899_345_920", 'memory_bytes = "80 GB"'))
    assert told.count("\n") == 0
    assert "gpu.memory_bytes" in told
