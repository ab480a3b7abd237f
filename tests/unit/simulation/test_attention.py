import pytest

from llmshed.simulation.attention import Attention


@pytest.mark.parametrize(
    ("name", "block_tokens"), [("flashinfer", 1), ("flashdecoding", 256), ("flashdecoding-ipex", 64), ("paged", 16)]
)
def test_each_kernel_has_its_size_of_block(name: str, block_tokens: int) -> None:
    assert Attention(name).block_tokens == block_tokens
