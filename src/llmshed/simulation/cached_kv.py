"""The KV cache with TGI's prefix cache on it (`RadixAllocator` of `backends/v3/src/radix.rs`)."""

from dataclasses import dataclass

from llmshed.simulation.kv import Allocation
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.radix import Node, RadixTrie, Row, lay_out


@dataclass(frozen=True, slots=True)
class _Prefix:
    """The prompt of a sequence that holds blocks, and the node that it found its prefix in."""

    node: Node
    row: Row


@dataclass(frozen=True, slots=True)
class _Holding:
    """Blocks of one sequence: `cached` ones belong to the trie, the rest to the sequence alone."""

    blocks: int
    cached: int
    prefix: _Prefix | None


class CachedKv:
    """Counts blocks: free ones, those that sequences hold, and those kept for prompts that may come again.

    - The longest cached prefix of a prompt, in whole blocks, is shared; only the rest is taken from the free blocks.
    - What ended leaves the whole blocks of its prompt in the cache, not its output. So two sequences that run at the
      same time do not share what neither found when it began, and the one that ends last gives its copy back.
    - When free blocks are short, prefixes that no running sequence refers to are given up. They stay given up if it
      was not enough, as in TGI.

    Invariants, stated by `check`: every block is free, cached or held by one sequence; none is held twice but as part
    of a cached prefix.
    """

    def __init__(self, usable_blocks: int, block_tokens: int) -> None:
        """Start empty with `usable_blocks` of `block_tokens` each."""
        self._usable = usable_blocks
        self._block_tokens = block_tokens
        self._free = usable_blocks
        self._trie = RadixTrie()
        self._held: dict[int, _Holding] = {}
        self._sum = 0

    @property
    def held_blocks(self) -> int:
        """Return the blocks that sequences hold, those of a shared prefix once for each that holds them."""
        return self._sum

    @property
    def held_tokens(self) -> int:
        """Return the tokens that the held blocks have room for; with shared prefixes it may exceed the cache."""
        return self._sum * self._block_tokens

    @property
    def occupied_blocks(self) -> int:
        """Return the blocks that are held or cached, each once."""
        return self._usable - self._free

    @property
    def cached_blocks(self) -> int:
        """Return the blocks kept for prompts, those that running sequences share included."""
        return self._trie.blocks

    def held_by(self, key: int) -> int:
        """Return the tokens that the blocks of one sequence have room for; 0 when it holds none."""
        holding = self._held.get(key)
        return 0 if holding is None else holding.blocks * self._block_tokens

    def allocate(self, key: int, tokens: int, prompt: PromptBlocks | None, input_tokens: int) -> Allocation | None:
        """Take the blocks for `tokens`, those of the cached prefix included; None when they cannot be had.

        Raises:
            ValueError: the unit of the prompt's ids is below 1.
        """
        cached, prefix = 0, None
        if prompt is not None:
            row = lay_out(prompt, input_tokens, self._block_tokens)
            node, cached = self._trie.find(row)
            prefix = _Prefix(node, row)
            # Held already, so that looking for room cannot take the very prefix that was found.
            self._trie.refer(node)
        blocks = -(-tokens // self._block_tokens)
        if not self._take(blocks - cached):
            if prefix is not None:
                self._trie.release(prefix.node)
            return None
        self._held[key] = _Holding(blocks, cached, prefix)
        self._sum += blocks
        return Allocation(blocks, cached * self._block_tokens)

    def cached_tokens(self, prompt: PromptBlocks | None, input_tokens: int) -> int:
        """Return the leading prompt tokens that `allocate` would find now; it does not count as a use of them.

        Raises:
            ValueError: the unit of the prompt's ids is below 1.
        """
        if prompt is None:
            return 0
        return self._trie.known_blocks(lay_out(prompt, input_tokens, self._block_tokens)) * self._block_tokens

    def free(self, key: int) -> None:
        """Give back what a sequence holds, and keep the whole blocks of its prompt.

        However it ended: TGI keeps the prompt of a failed or abandoned sequence too, and of one that went back to
        the queue before it was worked through.
        """
        holding = self._held.pop(key)
        self._sum -= holding.blocks
        kept = 0
        if holding.prefix is not None:
            kept = self._keep(holding.prefix, holding.cached)
        self._free += holding.blocks - holding.cached - kept

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold."""
        broken = list(self._trie.check())
        own = sum(holding.blocks - holding.cached for holding in self._held.values())
        if self._free < 0:
            broken.append(f"{-self._free} KV blocks too many are taken")
        if self._free + self._trie.blocks + own != self._usable:
            broken.append(
                f"{self._free} KV blocks are free, {self._trie.blocks} cached and {own} held by one sequence: "
                f"not the {self._usable} that exist"
            )
        if self._sum != sum(holding.blocks for holding in self._held.values()):
            broken.append(f"{self._sum} held KV blocks are counted, which is not what sequences hold")
        if any(
            holding.prefix is not None and holding.cached > holding.prefix.node.end for holding in self._held.values()
        ):
            broken.append("a cached prefix was taken from a sequence that holds it")
        return tuple(broken)

    def _take(self, blocks: int) -> bool:
        if self._free < blocks:
            self._free += self._trie.evict(blocks - self._free)
        if self._free < blocks:
            return False
        self._free -= blocks
        return True

    def _keep(self, prefix: _Prefix, cached: int) -> int:
        """Put a prompt into the trie, and return how many blocks of the sequence went there."""
        self._trie.release(prefix.node)
        if prefix.row.tokens <= cached * self._block_tokens:
            # All of it was found, and TGI does not look again.
            return 0
        return prefix.row.blocks - self._trie.insert(prefix.row)
