"""The prefix cache against a naive one that knows every cached prefix as a tuple and looks through all of them."""

from dataclasses import dataclass

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from llmshed.simulation.cached_kv import CachedKv
from llmshed.simulation.kv import Allocation
from llmshed.simulation.prefixes import PromptBlocks

Path = tuple[object, ...]


@dataclass
class Run:
    """A run of blocks behind the first `start` of its path."""

    start: int
    used_at: int
    number: int


class NaiveCache:
    """What ended prompts left, by whole path; blocks are tuples of tokens, whatever the size of the ids."""

    def __init__(self, usable: int) -> None:
        self.free = usable
        self.runs: dict[Path, Run] = {}
        self.holders: dict[int, Path] = {}
        self.uses = 0
        self.created = 0

    def find(self, blocks: Path) -> tuple[Path, int]:
        self.uses += 1
        path: Path = ()
        while (longer := self.next(path, blocks)) is not None:
            self.runs[longer].used_at = self.uses
            shared = common(longer, blocks)
            if shared < len(longer):
                return longer, shared
            path = longer
        return path, len(path)

    def next(self, path: Path, blocks: Path) -> Path | None:
        reached = len(path)
        for other, run in self.runs.items():
            if run.start == reached < len(blocks) and other[: reached + 1] == blocks[: reached + 1]:
                return other
        return None

    def keep(self, blocks: Path) -> int:
        """Return how many blocks were there already."""
        self.uses += 1
        path: Path = ()
        while (longer := self.next(path, blocks)) is not None:
            self.runs[longer].used_at = self.uses
            shared = common(longer, blocks)
            if shared == len(blocks):
                return shared
            path = longer
            if shared < len(longer):
                path = longer[:shared]
                self.add(path, self.runs[longer].start)
                self.runs[longer].start = shared
        if len(path) < len(blocks):
            self.add(blocks, len(path))
        return len(path)

    def add(self, path: Path, start: int) -> None:
        self.created += 1
        self.runs[path] = Run(start, self.uses, self.created)

    def evict(self, wanted: int) -> int:
        freed = 0
        while freed < wanted:
            parents = {path[: run.start] for path, run in self.runs.items()}
            leaves = [path for path in self.runs if path not in parents and path not in self.holders.values()]
            if not leaves:
                break
            oldest = min(leaves, key=lambda path: (self.runs[path].used_at, self.runs[path].number))
            run = self.runs.pop(oldest)
            cut = min(wanted - freed, len(oldest) - run.start)
            freed += cut
            if len(oldest) - cut > run.start:
                self.runs[oldest[: len(oldest) - cut]] = run
        return freed

    @property
    def cached(self) -> int:
        return sum(len(path) - run.start for path, run in self.runs.items())


def common(left: Path, right: Path) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
    )


def as_blocks(prompt: PromptBlocks, input_tokens: int, block_tokens: int) -> Path:
    """Spell a prompt out token by token, then cut it into whole blocks."""
    spelled = [(number, place) for number in prompt.ids for place in range(prompt.unit_tokens)][:input_tokens]
    whole = len(spelled) // block_tokens * block_tokens
    return tuple(tuple(spelled[begin : begin + block_tokens]) for begin in range(0, whole, block_tokens))


@dataclass
class Held:
    blocks: int
    cached: int
    prompt: PromptBlocks | None
    input_tokens: int


class TwoCaches(RuleBasedStateMachine):
    """The same life in both."""

    @initialize(
        usable=st.integers(4, 30),
        sizes=st.sampled_from([(1, 1), (2, 1), (4, 1), (1, 3), (2, 4), (3, 2), (4, 6), (6, 4)]),
    )
    def build(self, usable: int, sizes: tuple[int, int]) -> None:
        self.usable = usable
        self.block_tokens, self.unit_tokens = sizes
        self.kv = CachedKv(usable, self.block_tokens)
        self.naive = NaiveCache(usable)
        self.held: dict[int, Held] = {}
        self.next_key = 0

    @rule(
        ids=st.none() | st.lists(st.integers(0, 1), max_size=9).map(tuple),
        short=st.integers(0, 2),
        beyond=st.integers(0, 5),
        output=st.integers(0, 9),
    )
    def begin(self, ids: tuple[int, ...] | None, short: int, beyond: int, output: int) -> None:
        prompt = None if ids is None else PromptBlocks(ids, self.unit_tokens)
        input_tokens = max(len(ids or ()) * self.unit_tokens - short, 0) + (0 if short else beyond)
        self.allocate(prompt, input_tokens, output)

    def allocate(self, prompt: PromptBlocks | None, input_tokens: int, output: int) -> Allocation | None:
        key, self.next_key = self.next_key, self.next_key + 1
        path: Path = ()
        cached = 0
        if prompt is not None:
            path, cached = self.naive.find(as_blocks(prompt, input_tokens, self.block_tokens))
            self.naive.holders[key] = path
        # A question that counted as a use, or gave anything up, would part the two later.
        assert self.kv.cached_tokens(prompt, input_tokens) == cached * self.block_tokens
        needed = -(-(input_tokens + output) // self.block_tokens)
        if self.naive.free < needed - cached:
            self.naive.free += self.naive.evict(needed - cached - self.naive.free)
        expected = None
        if self.naive.free >= needed - cached:
            self.naive.free -= needed - cached
            self.held[key] = Held(needed, cached, prompt, input_tokens)
            expected = Allocation(needed, cached * self.block_tokens)
        else:
            self.naive.holders.pop(key, None)
        assert self.kv.allocate(key, input_tokens + output, prompt, input_tokens) == expected
        return expected

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self.give_back(data.draw(st.sampled_from(sorted(self.held))))

    def give_back(self, key: int) -> Held:
        held = self.held.pop(key)
        self.naive.holders.pop(key, None)
        kept = 0
        if held.prompt is not None:
            known = min(len(held.prompt.ids) * held.prompt.unit_tokens, held.input_tokens)
            if known > held.cached * self.block_tokens:
                blocks = as_blocks(held.prompt, held.input_tokens, self.block_tokens)
                kept = len(blocks) - self.naive.keep(blocks)
        self.naive.free += held.blocks - held.cached - kept
        self.kv.free(key)
        return held

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """A prompt that comes again right after it ended finds all its whole blocks."""
        held = self.give_back(data.draw(st.sampled_from(sorted(self.held))))
        if held.prompt is not None:
            again = self.allocate(held.prompt, held.input_tokens, 0)
            known = min(len(held.prompt.ids) * held.prompt.unit_tokens, held.input_tokens)
            assert again is not None
            assert again.cached_tokens == known // self.block_tokens * self.block_tokens

    @invariant()
    def both_agree(self) -> None:
        if not hasattr(self, "kv"):
            return
        assert self.kv.check() == ()
        assert self.kv.occupied_blocks == self.usable - self.naive.free <= self.usable
        assert self.kv.cached_blocks == self.naive.cached
        assert self.kv.held_blocks == sum(held.blocks for held in self.held.values())
        for key, held in self.held.items():
            assert self.kv.held_by(key) == held.blocks * self.block_tokens

    def teardown(self) -> None:
        """All that was allocated is freed, or kept for a prompt and then given up for room."""
        if not hasattr(self, "kv"):
            return
        for key in sorted(self.held):
            self.give_back(key)
        assert self.kv.occupied_blocks == self.kv.cached_blocks
        assert self.kv.allocate(self.next_key, self.usable * self.block_tokens, None, 0) is not None
        assert self.kv.cached_blocks == 0
        assert self.kv.check() == ()


class TwoCachesAtLength(TwoCaches):
    """The same, for the soak."""


TwoCaches.TestCase.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestTwoCaches = TwoCaches.TestCase
TwoCachesAtLength.TestCase.settings = settings(max_examples=500, stateful_step_count=60, deadline=None)
TestTwoCachesAtLength = pytest.mark.soak(TwoCachesAtLength.TestCase)


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=30), min_size=1, max_size=30), st.integers(40, 70))
@settings(max_examples=40, deadline=None)
def test_memory_is_bounded_by_the_cache_whatever_passes_through(prompts: list[list[int]], usable: int) -> None:
    kv = CachedKv(usable, 1)
    for key, ids in enumerate(prompts):
        assert kv.allocate(key, len(ids) + 1, PromptBlocks(tuple(ids), 1), len(ids)) is not None
        kv.free(key)
        assert kv.cached_blocks <= usable
    nodes = list(kv._trie._roots.values())
    kept = 0
    while nodes:
        node = nodes.pop()
        kept += len(node.ids)
        nodes.extend(node.children.values())
    assert kept <= 2 * usable
    assert len(kv._trie._leaves) <= usable
