"""The KV cache as a count of blocks: what an entry holds from its first step until its chunk ends."""

from dataclasses import dataclass
from typing import Protocol

from llmshed.simulation.prefixes import PromptBlocks


@dataclass(frozen=True, slots=True)
class Allocation:
    """What one sequence got.

    Args:
        blocks: KV blocks that it holds, those of its cached prefix included.
        cached_tokens: leading prompt tokens whose keys and values were found in the cache, in whole blocks. All of
            the prompt may be found; the engine still computes its last token.
    """

    blocks: int
    cached_tokens: int


class Kv(Protocol):
    """The KV cache of one replica.

    A sequence holds its blocks from `allocate` to `free`; nothing that is held is ever taken from it.
    """

    @property
    def held_blocks(self) -> int:
        """Return the blocks that sequences hold, those of a shared prefix once for each that holds them."""

    @property
    def held_tokens(self) -> int:
        """Return the tokens that the held blocks have room for: TGI's `tgi_batch_current_max_tokens`."""

    @property
    def occupied_blocks(self) -> int:
        """Return the blocks in use, each once: held, or kept for a prefix that may come again."""

    def held_by(self, key: int) -> int:
        """Return the tokens that the blocks of one sequence have room for; 0 when it holds none."""

    def allocate(self, key: int, tokens: int, prompt: PromptBlocks | None, input_tokens: int) -> Allocation | None:
        """Take the blocks for `tokens`, rounded up; None when they cannot be had, and then nothing has changed hands.

        Args:
            key: the sequence, which holds nothing yet.
            tokens: prompt and output that room is needed for, at least `input_tokens`.
            prompt: identity of the prompt's tokens; None when the cache is neither asked nor filled.
            input_tokens: length of the prompt; ids beyond it are not looked at.
        """

    def cached_tokens(self, prompt: PromptBlocks | None, input_tokens: int) -> int:
        """Return the leading prompt tokens that `allocate` would find in the cache now, in whole blocks.

        Unlike `allocate` it changes nothing: what was looked up is no more in use than before.
        """

    def free(self, key: int) -> None:
        """Give back what a sequence holds; a cache keeps the whole blocks of its prompt."""

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold."""


class KvBlocks:
    """Counts blocks held, by sequence; keeps nothing of what ended.

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

    @property
    def occupied_blocks(self) -> int:
        """Return the blocks held now."""
        return self._sum

    def held_by(self, key: int) -> int:
        """Return the tokens that the blocks of one sequence have room for; 0 when it holds none."""
        return self._held.get(key, 0) * self._block_tokens

    def allocate(self, key: int, tokens: int, prompt: PromptBlocks | None, input_tokens: int) -> Allocation | None:
        """Take the blocks for `tokens`, rounded up; None when they are not free. No prompt is ever cached."""
        del prompt, input_tokens
        blocks = -(-tokens // self._block_tokens)
        if self._sum + blocks > self._usable:
            return None
        self._held[key] = blocks
        self._sum += blocks
        self._allocated_total += blocks
        return Allocation(blocks, cached_tokens=0)

    def cached_tokens(self, prompt: PromptBlocks | None, input_tokens: int) -> int:
        """Return 0: no prompt is ever cached."""
        del prompt, input_tokens
        return 0

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
