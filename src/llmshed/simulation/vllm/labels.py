"""What the blocks of a prompt are known by."""

from dataclasses import dataclass

from llmshed.simulation.radix import Ids, Row


@dataclass(frozen=True, slots=True)
class Labels:
    """The ids that reach into each block of a prompt; blocks that lie within one id carry it alike, side by side.

    Real traces have one id for 512 tokens, which are 32 blocks: so blocks of one label are gone through at once.

    Args:
        origin: stands for the block before the first; ids of another unit are other ids.
        labels: one for each row of blocks that carry it.
        blocks_each: how many blocks a row has; the last may have fewer.
        blocks: all blocks.
    """

    origin: int
    labels: tuple[Ids, ...]
    blocks_each: int
    blocks: int

    def of(self, block: int) -> Ids:
        """Return the label of a block."""
        return self.labels[block // self.blocks_each]

    def end(self, block: int) -> int:
        """Return the block behind the last that stands in one row with this one and carries its label."""
        return min((block // self.blocks_each + 1) * self.blocks_each, self.blocks)


def labels_of(prompt: Row) -> Labels:
    """Return the labels of a prompt that was laid over blocks."""
    scale = prompt.scale
    blocks_per_id, rest = divmod(scale.unit_tokens, scale.block_tokens)
    if rest:
        keys = tuple(prompt.key(block) for block in range(prompt.blocks))
        return Labels(-scale.unit_tokens, keys, 1, prompt.blocks)
    ids = prompt.ids[: -(-prompt.blocks // blocks_per_id)]
    return Labels(-scale.unit_tokens, tuple((one,) for one in ids), blocks_per_id, prompt.blocks)
