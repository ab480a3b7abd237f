"""vLLM's block pool: blocks held, blocks free, and what free blocks still know.

A free block keeps its keys and values until somebody takes it, and those that lie free longest are taken first. A full
block is found again by all tokens up to its end. Two things can be found: the blocks of a prompt, by its ids, shared
with whoever holds them; and all blocks of a sequence that was preempted, by that sequence itself.

A sequence gives back its last block first. So of what it knew the end is forgotten before the beginning, and a shared
block never outlives the one before it.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from llmshed.simulation.radix import Ids, Row


@dataclass(slots=True, eq=False)
class _Run:
    """Free blocks side by side in the line; with an owner the first blocks of what it knew."""

    blocks: int
    owned: bool = False


@dataclass(slots=True, eq=False)
class _Shared:
    """One full block of prompts that begin alike, known by the block before it and its own ids."""

    number: int
    place: tuple[int, Ids]
    holders: int = 1
    blocks: int = 1


@dataclass(slots=True, eq=False)
class Holding:
    """One sequence's part of the pool; changed by the pool only.

    Args:
        prompt: whole blocks of the prompt by their ids; None when nobody else may find them.
        shared: its leading blocks that others may find.
        private_from_here: whether the blocks after `shared` stay its own although their ids are known, because
            another sequence computed them too.
        left: free blocks that it held when it was preempted and that are not taken yet.
        left_from: which of its blocks the first of `left` is.
        labels: the ids that reach into each block of `prompt`.
    """

    prompt: Row | None = None
    shared: list[_Shared] = field(default_factory=list)
    private_from_here: bool = False
    left: _Run | None = None
    left_from: int = 0
    labels: tuple[Ids, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        """Lay the labels out once; they are asked for with every block."""
        if self.prompt is not None:
            self.labels = _labels(self.prompt)


@dataclass(frozen=True, slots=True)
class Found:
    """What of a sequence lies in the pool already.

    Args:
        shared: leading blocks of its prompt.
        left: blocks after them that it left behind when it was preempted.
        idle: those of both that nobody holds, which must be free to be taken.
    """

    shared: tuple[_Shared, ...]
    left: int
    idle: int

    @property
    def blocks(self) -> int:
        """Return the blocks that need not be computed."""
        return len(self.shared) + self.left


NOTHING_FOUND = Found((), 0, 0)


class BlockPool:
    """The blocks of one replica.

    Invariants, stated by `check`: every block is held or free, and a shared one is counted once.
    """

    def __init__(self, usable_blocks: int, *, caching: bool) -> None:
        """Start with all blocks free and nothing known; without `caching` nothing is ever found."""
        self._usable = usable_blocks
        self._caching = caching
        self._free = usable_blocks
        self._line: OrderedDict[_Run | _Shared, None] = OrderedDict()
        self._known: dict[tuple[int, Ids], _Shared] = {}
        self._published_total = 0
        self._release_unknown(usable_blocks)

    @property
    def free(self) -> int:
        """Return the blocks that nobody holds."""
        return self._free

    @property
    def held(self) -> int:
        """Return the blocks that somebody holds, a shared one once."""
        return self._usable - self._free

    def find(self, holding: Holding, most_blocks: int) -> Found:
        """Look for a sequence's first `most_blocks` blocks; changes nothing."""
        if not self._caching:
            return NOTHING_FOUND
        shared = self._find_prompt(holding, most_blocks)
        left = 0
        if holding.left is not None and len(shared) == holding.left_from:
            left = min(holding.left.blocks, most_blocks - len(shared))
        idle = sum(1 for block in shared if not block.holders)
        return Found(tuple(shared), left, idle + left)

    def known_blocks(self, prompt: Row, most_blocks: int) -> int:
        """Return how many of a prompt's first `most_blocks` blocks would be found; changes nothing."""
        return len(self._find_known(prompt, _labels(prompt), most_blocks)) if self._caching else 0

    def claim(self, holding: Holding, found: Found) -> None:
        """Let a sequence that holds nothing hold what was found for it just now."""
        for block in found.shared:
            if not block.holders:
                del self._line[block]
            block.holders += 1
        holding.shared = list(found.shared)
        holding.private_from_here = found.left > 0
        if holding.left is not None:
            holding.left.blocks -= found.left
            holding.left.owned = False
            if not holding.left.blocks:
                self._line.pop(holding.left, None)
            holding.left = None
        self._free -= found.idle

    def take(self, blocks: int) -> None:
        """Take free blocks, those that lie free longest first; what they knew is forgotten."""
        self._free -= blocks
        while blocks:
            oldest, _ = self._line.popitem(last=False)
            if isinstance(oldest, _Shared):
                del self._known[oldest.place]
                blocks -= 1
                continue
            taken = min(oldest.blocks, blocks)
            blocks -= taken
            oldest.blocks -= taken
            if oldest.blocks:
                self._line[oldest] = None
                self._line.move_to_end(oldest, last=False)

    def publish(self, holding: Holding, full_blocks: int) -> None:
        """Let others find the prompt's blocks up to the first `full_blocks`, which the sequence holds."""
        prompt, shared = holding.prompt, holding.shared
        if prompt is None or not self._caching or holding.private_from_here:
            return
        above = shared[-1].number if shared else _origin(prompt)
        for label in holding.labels[len(shared) : full_blocks]:
            place = (above, label)
            if place in self._known:
                holding.private_from_here = True
                return
            self._published_total = above = self._published_total + 1
            self._known[place] = block = _Shared(above, place)
            shared.append(block)

    def release(self, holding: Holding, blocks: int, *, known_blocks: int) -> None:
        """Take back all `blocks` of a sequence, the last first.

        Args:
            holding: what it holds.
            blocks: how many, the shared ones included.
            known_blocks: the first so many are full and computed, and the sequence will come back for them; 0 when it
                will not, and then only its prompt can be found.
        """
        private = blocks - len(holding.shared)
        kept = max(known_blocks - len(holding.shared), 0) if self._caching else 0
        self._release_unknown(private - kept)
        if kept:
            holding.left = _Run(kept, owned=True)
            holding.left_from = len(holding.shared)
            self._line[holding.left] = None
        for block in reversed(holding.shared):
            block.holders -= 1
            if not block.holders:
                self._line[block] = None
                self._free += 1
        self._free += private
        holding.shared = []

    def unpublish(self, holding: Holding, computed_blocks: int) -> None:
        """Make private again what was published for a step that will not take place."""
        while len(holding.shared) > computed_blocks:
            del self._known[holding.shared.pop().place]

    def check(self, holdings: Iterable[tuple[Holding, int]]) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold.

        Args:
            holdings: what every sequence that holds blocks holds, and how many.
        """
        broken = []
        holders: dict[_Shared, int] = {}
        held = 0
        for holding, blocks in holdings:
            held += blocks - len(holding.shared)
            for block in holding.shared:
                holders[block] = holders.get(block, 0) + 1
        held += len(holders)
        if not 0 <= self._free <= self._usable:
            broken.append(f"{self._free} of {self._usable} KV blocks are free")
        if held != self.held:
            broken.append(f"{self.held} KV blocks are counted, {held} are held")
        if sum(part.blocks for part in self._line) != self._free:
            broken.append(f"{self._free} KV blocks are counted as free, another number lies in the line")
        if any(block.holders != count for block, count in holders.items()):
            broken.append("a shared KV block is held by another number of sequences than counted")
        return tuple(broken)

    def _find_prompt(self, holding: Holding, most_blocks: int) -> list[_Shared]:
        if holding.prompt is None:
            return []
        return self._find_known(holding.prompt, holding.labels, most_blocks)

    def _find_known(self, prompt: Row, labels: tuple[Ids, ...], most_blocks: int) -> list[_Shared]:
        found: list[_Shared] = []
        above = _origin(prompt)
        for label in labels[:most_blocks]:
            block = self._known.get((above, label))
            if block is None:
                break
            found.append(block)
            above = block.number
        return found

    def _release_unknown(self, blocks: int) -> None:
        """Put blocks that nobody will look for at the end of the line; `_free` is the caller's."""
        if not blocks:
            return
        last = next(reversed(self._line), None)
        if isinstance(last, _Run) and not last.owned:
            last.blocks += blocks
        else:
            self._line[_Run(blocks)] = None


def _origin(prompt: Row) -> int:
    """Return what stands for the block before the first; ids of another unit are other ids."""
    return -prompt.scale.unit_tokens


def _labels(prompt: Row) -> tuple[Ids, ...]:
    """Return the ids that reach into each block; several blocks of one id carry it alike, told apart by their place."""
    blocks_per_id, rest = divmod(prompt.scale.unit_tokens, prompt.scale.block_tokens)
    if rest:
        return tuple(prompt.key(block) for block in range(prompt.blocks))
    # One tuple for all blocks of an id, made once: prompts are long and ids large in real traces.
    labels = ((one,) for one in prompt.ids)
    return tuple(label for label in labels for _ in range(blocks_per_id))[: prompt.blocks]
