"""vLLM's block pool: blocks held, blocks free, and what free blocks still know.

A free block keeps its keys and values until somebody takes it, and those that lie free longest are taken first. A full
block is found again by all tokens up to its end. Two things can be found: the blocks of a prompt, by its ids, shared
with whoever holds them; and all blocks of a sequence that was preempted, by that sequence itself.

A sequence gives back its last block first. So of what it knew the end is forgotten before the beginning, and a shared
block never outlives the one before it.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from llmshed.simulation.radix import Ids, Row
from llmshed.simulation.vllm.labels import Labels, labels_of


@dataclass(slots=True, eq=False)
class _Run:
    """Free blocks side by side in the line; with an owner the first blocks of what it knew."""

    blocks: int
    owned: bool = False


@dataclass(slots=True, eq=False)
class _Shared:
    """Full blocks side by side of prompts that begin alike, known by what stands before them and their one label.

    Whoever holds one of them holds all: for somebody who needs the first few only, those are parted from the rest.
    """

    number: int
    place: tuple[int, Ids]
    blocks: int
    above: "_Shared | None"
    holders: int = 1


@dataclass(slots=True, eq=False)
class Holding:
    """One sequence's part of the pool; changed by the pool only.

    Args:
        prompt: whole blocks of the prompt by their ids; None when nobody else may find them.
        shared: the last of its leading blocks that others may find, which leads to those above.
        shared_blocks: how many such blocks there are.
        private_from_here: whether the blocks after those stay its own although their ids are known, because another
            sequence computed them too.
        left: free blocks that it held when it was preempted and that are not taken yet.
        left_from: which of its blocks the first of `left` is.
        labels: what the blocks of `prompt` are known by.
    """

    prompt: Row | None = None
    shared: _Shared | None = None
    shared_blocks: int = 0
    private_from_here: bool = False
    left: _Run | None = None
    left_from: int = 0
    labels: Labels | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Lay the labels out once; they are asked for with every piece."""
        if self.prompt is not None:
            self.labels = labels_of(self.prompt)


@dataclass(frozen=True, slots=True)
class Found:
    """What of a sequence lies in the pool already.

    Args:
        shared: leading blocks of its prompt; of the last ones perhaps not all.
        shared_blocks: how many blocks of those.
        left: blocks after them that it left behind when it was preempted.
        idle: those of both that nobody holds, which must be free to be taken.
    """

    shared: tuple[_Shared, ...]
    shared_blocks: int
    left: int
    idle: int

    @property
    def blocks(self) -> int:
        """Return the blocks that need not be computed."""
        return self.shared_blocks + self.left


NOTHING_FOUND = Found((), 0, 0, 0)


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
        shared, blocks = ((), 0) if holding.labels is None else self._find_known(holding.labels, most_blocks)
        left = 0
        if holding.left is not None and blocks == holding.left_from:
            left = min(holding.left.blocks, most_blocks - blocks)
        beyond = sum(run.blocks for run in shared) - blocks
        idle = sum(run.blocks for run in shared if not run.holders)
        if shared and not shared[-1].holders:
            idle -= beyond
        return Found(shared, blocks, left, idle + left)

    def known_blocks(self, prompt: Row, most_blocks: int) -> int:
        """Return how many of a prompt's first `most_blocks` blocks would be found; changes nothing."""
        return self._find_known(labels_of(prompt), most_blocks)[1] if self._caching else 0

    def claim(self, holding: Holding, found: Found) -> None:
        """Let a sequence that holds nothing hold what was found for it just now."""
        left = found.shared_blocks
        for run in found.shared:
            held = run if run.blocks <= left else self._part(run, left)
            left -= held.blocks
            if not held.holders:
                # What was parted just now never stood there.
                self._line.pop(held, None)
            held.holders += 1
            holding.shared = held
        holding.shared_blocks = found.shared_blocks
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
            oldest = next(iter(self._line))
            taken = min(oldest.blocks, blocks)
            blocks -= taken
            oldest.blocks -= taken
            if not oldest.blocks:
                del self._line[oldest]
                if isinstance(oldest, _Shared):
                    del self._known[oldest.place]

    def publish(self, holding: Holding, full_blocks: int) -> None:
        """Let others find the prompt's blocks up to the first `full_blocks`, which the sequence holds."""
        labels = holding.labels
        if labels is None or not self._caching or holding.private_from_here:
            return
        full = min(full_blocks, labels.blocks)
        while (start := holding.shared_blocks) < full:
            above = labels.origin if holding.shared is None else holding.shared.number
            place = (above, labels.of(start))
            if place in self._known:
                holding.private_from_here = True
                return
            blocks = min(labels.end(start), full) - start
            holding.shared = self._add(place, blocks, holding.shared)
            holding.shared_blocks += blocks

    def release(self, holding: Holding, blocks: int, *, known_blocks: int) -> None:
        """Take back all `blocks` of a sequence, the last first.

        Args:
            holding: what it holds.
            blocks: how many, the shared ones included.
            known_blocks: the first so many are full and computed, and the sequence will come back for them; 0 when it
                will not, and then only its prompt can be found.
        """
        private = blocks - holding.shared_blocks
        kept = max(known_blocks - holding.shared_blocks, 0) if self._caching else 0
        self._release_unknown(private - kept)
        if kept:
            holding.left = _Run(kept, owned=True)
            holding.left_from = holding.shared_blocks
            self._line[holding.left] = None
        for run in _path(holding):
            run.holders -= 1
            if not run.holders:
                self._line[run] = None
                self._free += run.blocks
        self._free += private
        holding.shared, holding.shared_blocks = None, 0

    def unpublish(self, holding: Holding, computed_blocks: int) -> None:
        """Make private again what was published for a step that will not take place."""
        while holding.shared is not None and holding.shared_blocks > computed_blocks:
            last = holding.shared
            cut = min(last.blocks, holding.shared_blocks - computed_blocks)
            last.blocks -= cut
            holding.shared_blocks -= cut
            if not last.blocks:
                del self._known[last.place]
                holding.shared = last.above

    def check(self, holdings: Iterable[tuple[Holding, int]]) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold.

        Args:
            holdings: what every sequence that holds blocks holds, and how many.
        """
        broken = []
        holders: dict[_Shared, int] = {}
        held = 0
        for holding, blocks in holdings:
            held += blocks - holding.shared_blocks
            path = list(_path(holding))
            if sum(run.blocks for run in path) != holding.shared_blocks:
                broken.append(f"a sequence counts {holding.shared_blocks} shared KV blocks, which is not what it holds")
            for run in path:
                holders[run] = holders.get(run, 0) + 1
        held += sum(run.blocks for run in holders)
        if not 0 <= self._free <= self._usable:
            broken.append(f"{self._free} of {self._usable} KV blocks are free")
        if held != self.held:
            broken.append(f"{self.held} KV blocks are counted, {held} are held")
        if sum(part.blocks for part in self._line) != self._free:
            broken.append(f"{self._free} KV blocks are counted as free, another number lies in the line")
        if any(run.holders != count for run, count in holders.items()):
            broken.append("a shared KV block is held by another number of sequences than counted")
        return tuple(broken)

    def _find_known(self, labels: Labels, most_blocks: int) -> tuple[tuple[_Shared, ...], int]:
        """Return what is known of a prompt from its first block on, and how many blocks of that it has use for."""
        found: list[_Shared] = []
        above, blocks, most = labels.origin, 0, min(most_blocks, labels.blocks)
        while blocks < most and (run := self._known.get((above, labels.of(blocks)))) is not None:
            found.append(run)
            above = run.number
            blocks = min(blocks + run.blocks, most)
        return tuple(found), blocks

    def _add(self, place: tuple[int, Ids], blocks: int, above: _Shared | None) -> _Shared:
        self._published_total += 1
        run = self._known[place] = _Shared(self._published_total, place, blocks, above)
        return run

    def _part(self, run: _Shared, blocks: int) -> _Shared:
        """Part the first blocks from the rest, and return them; they have the holders of all, and stand in no line.

        What follows the rest, and who holds it, knows it by its number, so that stays with it.
        """
        first = self._add(run.place, blocks, run.above)
        first.holders = run.holders
        run.place = (first.number, run.place[1])
        self._known[run.place] = run
        run.above = first
        run.blocks -= blocks
        return first

    def _release_unknown(self, blocks: int) -> None:
        """Put blocks that nobody will look for at the end of the line; `_free` is the caller's."""
        if not blocks:
            return
        last = next(reversed(self._line), None)
        if isinstance(last, _Run) and not last.owned:
            last.blocks += blocks
        else:
            self._line[_Run(blocks)] = None


def _path(holding: Holding) -> Iterator[_Shared]:
    """Yield the shared blocks of a sequence, the last first."""
    run = holding.shared
    while run is not None:
        yield run
        run = run.above
