"""TGI's attention kernels, as far as the scheduler feels them (`models/globals.py`)."""

from enum import Enum


class Attention(Enum):
    """Kernels by their name in TGI's ATTENTION."""

    FLASHINFER = "flashinfer"
    FLASHDECODING = "flashdecoding"
    FLASHDECODING_IPEX = "flashdecoding-ipex"
    PAGED = "paged"

    @property
    def block_tokens(self) -> int:
        """Return the KV tokens of one block."""
        return _BLOCK_TOKENS[self]


_BLOCK_TOKENS = {
    Attention.FLASHINFER: 1,
    Attention.FLASHDECODING: 256,
    Attention.FLASHDECODING_IPEX: 64,
    Attention.PAGED: 16,
}
