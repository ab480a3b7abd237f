"""What the prefix cache is asked for a prompt, in its first chunk and in those after it."""

from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.sequences import Sequence

OWN_ID_BITS = 40
"""Room for the place in a sequence below its key, in an id that no other sequence has."""


def prompt_of_chunk(sequence: Sequence, output_tokens: int) -> PromptBlocks | None:
    """Return the identity of the prompt that the router hands to the cache, or None when it hands none.

    A chunk that is queued again looks up the whole text, its own output included (`infer/mod.rs` tokenizes it anew).
    The cache has the prompt of each chunk before it, since that was inserted when the chunk ended: so the third chunk
    finds the output of the first, and none finds the output of the one just before. Output is given ids that no other
    sequence has: it is taken to be repeated by nobody.

    Args:
        sequence: what was asked.
        output_tokens: tokens produced in earlier chunks; 0 for the first.
    """
    blocks = sequence.blocks
    if blocks is None:
        return None
    length = sequence.input_tokens + output_tokens
    ids, unit = blocks.ids, blocks.unit_tokens
    if output_tokens:
        ids += tuple(_own_id(sequence.key, place) for place in range(len(ids), length // unit))
    if sequence.truncate_tokens is None or sequence.truncate_tokens >= length:
        return PromptBlocks(ids, unit)
    # Truncation keeps the last tokens, and ids of larger units do not tell where those begin.
    if unit != 1 or len(ids) != length:
        return None
    return PromptBlocks(ids[length - sequence.truncate_tokens :], 1)


def _own_id(key: int, place: int) -> int:
    return -1 - ((key << OWN_ID_BITS) | place)
