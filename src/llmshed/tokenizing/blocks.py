"""Keyed names for the leading blocks of a prompt, so that equal beginnings can be found without keeping any text."""

import hashlib

BLOCK_BYTES = 1024
"""Length of a block in UTF-8 bytes of the rendered text."""
MOST_BLOCKS = 64
"""Blocks that are named at most; what two prompts share beyond them is not seen."""

_DIGEST_BYTES = 8
_LEAST_KEY_BYTES, _MOST_KEY_BYTES = 16, 64


class BlockHasher:
    """Names whole blocks by BLAKE2b with a secret key, each chained to the one before it.

    Equal names mean equal text from the beginning. Without the key they tell nothing of the text, not even to someone
    who guesses it, so they may be logged.
    """

    def __init__(self, key: bytes) -> None:
        """Take a key of 16 to 64 bytes; without one nothing is named.

        Raises:
            ValueError: the key has another length.
        """
        if key and not _LEAST_KEY_BYTES <= len(key) <= _MOST_KEY_BYTES:
            raise ValueError(f"block key of {len(key)} bytes: 16 to 64 are needed, or none to name no blocks")
        self._key = key

    def names(self, text: bytes) -> tuple[str, ...]:
        """Return 16 hex digits for each whole leading block; a last block that is not full has no name."""
        if not self._key:
            return ()
        found: list[str] = []
        link = b""
        for place in range(min(len(text) // BLOCK_BYTES, MOST_BLOCKS)):
            block = text[place * BLOCK_BYTES : (place + 1) * BLOCK_BYTES]
            link = hashlib.blake2b(link + block, key=self._key, digest_size=_DIGEST_BYTES).digest()
            found.append(link.hex())
        return tuple(found)
