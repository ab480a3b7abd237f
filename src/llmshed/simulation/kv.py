"""The KV cache as a count of blocks: what an entry holds from its first step until its chunk ends."""


class KvBlocks:
    """Counts blocks held, by sequence.

    Invariants, stated by `check`: no more blocks are held than exist, and what was allocated is held or was freed.
    """

    def __init__(self, usable_blocks: int, block_tokens: int) -> None:
        """Start empty with `usable_blocks` of `block_tokens` each."""
        self._usable = usable_blocks
        self._block_tokens = block_tokens
        self._held: dict[int, int] = {}
        self._sum = 0
        self._allocated_total = 0
        self._freed_total = 0

    @property
    def held_blocks(self) -> int:
        """Return the blocks held now."""
        return self._sum

    @property
    def held_tokens(self) -> int:
        """Return the tokens that the held blocks have room for: TGI's `tgi_batch_current_max_tokens`."""
        return self._sum * self._block_tokens

    def held_by(self, key: int) -> int:
        """Return the tokens that the blocks of one sequence have room for; 0 when it holds none."""
        return self._held.get(key, 0) * self._block_tokens

    def allocate(self, key: int, tokens: int) -> int | None:
        """Take the blocks for `tokens`, rounded up, and return their number; None when they are not free."""
        blocks = -(-tokens // self._block_tokens)
        if self._sum + blocks > self._usable:
            return None
        self._held[key] = blocks
        self._sum += blocks
        self._allocated_total += blocks
        return blocks

    def free(self, key: int) -> None:
        """Give back what a sequence holds."""
        blocks = self._held.pop(key)
        self._sum -= blocks
        self._freed_total += blocks

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold."""
        broken = []
        if self._sum > self._usable:
            broken.append(f"{self._sum} KV blocks are held, {self._usable} exist")
        if self._sum != sum(self._held.values()):
            broken.append(f"{self._sum} KV blocks are counted, {sum(self._held.values())} are held")
        if self._allocated_total - self._freed_total != self._sum:
            allocated, freed = self._allocated_total, self._freed_total
            broken.append(f"{allocated} KV blocks were allocated and {freed} freed, yet {self._sum} are held")
        return tuple(broken)
