"""A replica file in which nothing is left out."""

import pytest

REPLICA = """\
schema = "llmshed.replica/1"
name = "mine"
[model]
id = "org/model"
parameters = 8_030_261_248
layers = 32
hidden_size = 4096
attention_heads = 32
kv_heads = 8
head_size = 128
vocabulary_size = 128_256
context_tokens = 8192
[gpu]
name = "NVIDIA H100 80GB HBM3"
memory_bytes = 85_899_345_920
bandwidth_bytes_per_second = 3.35e12
flops_per_second = 989.4e12
[efficiency]
flops_ratio = 0.6
bandwidth_ratio = 0.8
memory_ratio = 0.9
reserve_bytes = 2_000_000_000
step_seconds = 0.002
[engine]
mode = "tgi"
"""


@pytest.fixture(scope="session")
def replica_text() -> str:
    """A file that describes a replica of TGI, with everything that is needed and nothing else."""
    return REPLICA
