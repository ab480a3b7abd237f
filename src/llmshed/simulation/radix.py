"""Which prefixes of prompts a replica has cached: TGI's radix trie (`backends/v3/src/radix.rs`), as counts of blocks.

A node stands for a run of blocks that follows its parent's, so the path from the root is a prefix. It is never given
up while something refers to it: a running sequence that found its prefix there, or a child. What nothing refers to is
a leaf, and leaves go in the order of their last use, cut from their end when less than all of one is needed.

The ids of a prompt and the blocks of the cache may have different sizes. A block is found when all ids that reach into
it are equal; so a block is known by those ids, and by all before them, which is what the path is.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from llmshed.simulation.prefixes import PromptBlocks

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """How ids lie over blocks: tokens of one block, and of one id."""

    block_tokens: int
    unit_tokens: int

    def first(self, block: int) -> int:
        """Return the place of the first id that reaches into a block."""
        return block * self.block_tokens // self.unit_tokens

    def end(self, block: int) -> int:
        """Return the place behind the last id that reaches into the blocks before this one."""
        return -(-block * self.block_tokens // self.unit_tokens)


@dataclass(slots=True, eq=False)
class Node:
    """A run of cached blocks; changed by the trie only.

    Args:
        parent: the node whose blocks come before; None for a root.
        start: first block, counted from the start of the prompt.
        end: the block behind the last.
        ids: all ids that reach into the blocks; once the node was cut, up to as many again behind them.
        scale: how they lie over the blocks.
        number: order of creation, which settles ties.
        used_at: the trie's count of uses when it was last found or filled.
        references: children, and running sequences that found their prefix here.
        listed: whether it stands in the trie's list of leaves.
    """

    parent: "Node | None"
    start: int
    end: int
    ids: Ids
    scale: Scale
    number: int
    used_at: int
    references: int = 0
    listed: bool = False
    children: dict[Ids, "Node"] = field(default_factory=dict)

    @property
    def key(self) -> Ids:
        """Return the ids that reach into the first block, by which the parent knows the node."""
        return self.ids[: self.scale.end(self.start + 1) - self.scale.first(self.start)]


@dataclass(frozen=True, slots=True)
class Row:
    """A prompt laid over blocks.

    Args:
        ids: the prompt's ids.
        scale: how they lie over the blocks.
        tokens: prompt tokens that the ids tell.
        blocks: whole blocks of them.
    """

    ids: Ids
    scale: Scale
    tokens: int
    blocks: int

    def between(self, start: int, end: int) -> Ids:
        """Return the ids that reach into the blocks from `start` up to `end`, the latter left out."""
        return self.ids[self.scale.first(start) : self.scale.end(end)]

    def key(self, block: int) -> Ids:
        """Return the ids that reach into one block; none when the prompt has no such whole block."""
        return self.between(block, block + 1) if block < self.blocks else ()

    def shared_end(self, node: Node) -> int:
        """Return the block up to which the prompt follows a node to which it followed the path."""
        first = self.scale.first(node.start)
        equal = first + _equal_ids(node.ids, self.ids, first)
        return min(node.end, self.blocks, equal * self.scale.unit_tokens // self.scale.block_tokens)


def _equal_ids(left: Ids, right: Ids, origin: int) -> int:
    """Return how many ids at the front of `left` are those of `right` from `origin` on."""
    low, high = 0, min(len(left), len(right) - origin)
    if left[:high] == right[origin : origin + high]:
        return high
    # Halving compares slices, which is some ten times faster than a loop over ids, and linear in all.
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[origin + low : origin + middle]:
            low = middle
        else:
            high = middle
    return low


def lay_out(prompt: PromptBlocks, input_tokens: int, block_tokens: int) -> Row:
    """Lay a prompt of `input_tokens` over blocks; ids beyond its length are left out of account.

    Raises:
        ValueError: the ids' unit is no whole number of tokens from 1.
    """
    if prompt.unit_tokens < 1:
        raise ValueError(f"unit_tokens is {prompt.unit_tokens}; accepted are whole numbers from 1")
    tokens = min(len(prompt.ids) * prompt.unit_tokens, input_tokens)
    return Row(prompt.ids, Scale(block_tokens, prompt.unit_tokens), tokens, tokens // block_tokens)


class RadixTrie:
    """Prefixes of ended prompts, in blocks.

    Prompts whose ids have different units never share: ids of another size are other ids. `check` states the
    invariants: every run of blocks joins its parent's, and what is referred to is counted so.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._roots: dict[Scale, Node] = {}
        self._leaves: list[tuple[int, int, Node]] = []
        self._uses = 0
        self._nodes_total = 0
        self._blocks = 0

    @property
    def blocks(self) -> int:
        """Return the blocks of all nodes."""
        return self._blocks

    def find(self, row: Row) -> tuple[Node, int]:
        """Return the node in which the longest cached prefix of a prompt ends, and the blocks of that prefix.

        Every node on the way counts as used now, the last one as a whole even if the prompt leaves it midway.
        """
        self._uses += 1
        node, shared_end = self._root(row.scale), 0
        for node, shared_end in self._path(row):  # noqa: B007 - the last of the path is what is sought
            node.used_at = self._uses
        return node, shared_end

    def known_blocks(self, row: Row) -> int:
        """Return the blocks of the longest cached prefix of a prompt; unlike `find` it does not count as a use."""
        return max((shared_end for _, shared_end in self._path(row)), default=0)

    def insert(self, row: Row) -> int:
        """Keep the blocks of a prompt, and return how many of them, from the front, were there already."""
        self._uses += 1
        node = self._root(row.scale)
        while node.end < row.blocks:
            child = node.children.get(row.key(node.end))
            if child is None:
                known = node.end
                self._add(node, row)
                return known
            child.used_at = self._uses
            shared_end = row.shared_end(child)
            if shared_end < min(child.end, row.blocks):
                child = self._split(child, shared_end)
            node = child
        return row.blocks

    def refer(self, node: Node) -> None:
        """Keep a node, and with it the path to it, from being given up until `release`."""
        node.references += 1

    def release(self, node: Node) -> None:
        """Take back one `refer`."""
        node.references -= 1
        self._list_if_leaf(node)

    def evict(self, blocks: int) -> int:
        """Give up leaves, least recently used first, until `blocks` are free; return how many became so."""
        freed = 0
        while freed < blocks and (leaf := self._oldest_leaf()) is not None:
            cut = min(blocks - freed, leaf.end - leaf.start)
            freed += cut
            self._cut(leaf, cut)
        return freed

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold."""
        broken = []
        blocks = 0
        nodes = list(self._roots.values())
        while nodes:
            node = nodes.pop()
            nodes.extend(node.children.values())
            blocks += node.end - node.start
            if node.references < len(node.children):
                broken.append(f"a node with {len(node.children)} children has {node.references} references")
            if node.parent is not None and not node.references and not node.listed:
                broken.append("a leaf can never be given up")
            if any(child.parent is not node or child.start != node.end for child in node.children.values()):
                broken.append("a run of blocks does not follow its parent's")
            if node.parent is not None and node.start >= node.end:
                broken.append("a node has no blocks")
        if blocks != self._blocks:
            broken.append(f"{self._blocks} cached blocks are counted, {blocks} are there")
        return tuple(broken)

    def _root(self, scale: Scale) -> Node:
        root = self._roots.get(scale)
        if root is None:
            root = self._roots[scale] = Node(None, 0, 0, (), scale, number=0, used_at=0)
        return root

    def _path(self, row: Row) -> Iterator[tuple[Node, int]]:
        """Yield the nodes that a prompt follows, each with the block up to which it does."""
        node = self._root(row.scale)
        while (child := node.children.get(row.key(node.end))) is not None:
            shared_end = row.shared_end(child)
            yield child, shared_end
            if shared_end < child.end:
                return
            node = child

    def _new(self, parent: Node, start: int, end: int, ids: Ids) -> Node:
        self._nodes_total += 1
        node = Node(parent, start, end, ids, parent.scale, self._nodes_total, self._uses)
        parent.children[node.key] = node
        return node

    def _add(self, parent: Node, row: Row) -> None:
        """Put the blocks of a prompt that follow `parent` into a node of their own."""
        node = self._new(parent, parent.end, row.blocks, row.between(parent.end, row.blocks))
        parent.references += 1
        self._blocks += node.end - node.start
        self._list_if_leaf(node)

    def _split(self, lower: Node, at: int) -> Node:
        """Put the blocks before `at` into a node of their own above; references stay with what is below."""
        if lower.parent is None:
            raise ValueError("a root has no blocks and is never split")
        scale, origin = lower.scale, lower.scale.first(lower.start)
        # The new node takes the place of the old one, so the parent has as many children as before.
        upper = self._new(lower.parent, lower.start, at, lower.ids[: scale.end(at) - origin])
        lower.ids = lower.ids[scale.first(at) - origin : scale.end(lower.end) - origin]
        lower.parent, lower.start = upper, at
        upper.children[lower.key] = lower
        upper.references = 1
        return upper

    def _cut(self, leaf: Node, blocks: int) -> None:
        """Take blocks off the end of a leaf that is not listed; a leaf without any is gone."""
        leaf.end -= blocks
        self._blocks -= blocks
        if leaf.end > leaf.start:
            needed = leaf.scale.end(leaf.end) - leaf.scale.first(leaf.start)
            # Not at each cut: it copies.
            if len(leaf.ids) > 2 * needed:
                leaf.ids = leaf.ids[:needed]
            self._list_if_leaf(leaf)
        elif leaf.parent is not None:
            del leaf.parent.children[leaf.key]
            self.release(leaf.parent)

    def _list_if_leaf(self, node: Node) -> None:
        if not node.references and not node.listed and node.parent is not None:
            node.listed = True
            heappush(self._leaves, (node.used_at, node.number, node))

    def _oldest_leaf(self) -> Node | None:
        """Take the least recently used leaf off the list.

        A node stands on it once at most, perhaps under a use that is long past, or referred to again: that is put
        right here, so that using a node costs nothing, and each correction is paid for by a use.
        """
        while self._leaves:
            used_at, _, node = heappop(self._leaves)
            node.listed = False
            if node.references:
                continue
            if node.used_at == used_at:
                return node
            self._list_if_leaf(node)
        return None
