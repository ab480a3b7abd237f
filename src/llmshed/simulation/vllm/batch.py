"""The running sequences of one simulated vLLM replica, and what their next steps do."""

from collections.abc import Iterator
from dataclasses import dataclass

from llmshed.simulation.cost import StepWork
from llmshed.simulation.radix import Row
from llmshed.simulation.sequences import Phase
from llmshed.simulation.vllm.blocks import BlockPool
from llmshed.simulation.vllm.entry import VllmEntry
from llmshed.simulation.vllm.filling import Filling
from llmshed.simulation.vllm.line import WaitingLine
from llmshed.simulation.vllm.pack import DecodingPack
from llmshed.simulation.vllm.parameters import VllmParameters


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The steps that come next.

    Args:
        steps: how many alike; more than one only when all that runs decodes.
        work: what the first of them works through.
        joined: sequences that began to run with it.
        preempted: those that gave up their blocks for it, in that order.
    """

    steps: int
    work: StepWork
    joined: int
    preempted: tuple[VllmEntry, ...]


class Batch:
    """Running sequences in the order in which they joined, with their KV blocks.

    `plan`, then `pass_steps` until all steps of the plan have ended, then `settle`; then sequences may be taken out,
    until the next `plan`. After a plan the blocks of its first step are taken.
    """

    def __init__(self, parameters: VllmParameters) -> None:
        """Start empty."""
        self._parameters = parameters
        self._pool = BlockPool(parameters.usable_blocks, caching=parameters.prefix_caching)
        self._pack = DecodingPack(parameters.block_tokens)
        self._running: list[VllmEntry] = []
        self._pieces: tuple[VllmEntry, ...] = ()
        self._held_up: tuple[VllmEntry, ...] = ()
        self._joined_total = 0

    def __len__(self) -> int:
        """Return the running sequences."""
        return len(self._running)

    def __iter__(self) -> Iterator[VllmEntry]:
        """Yield the running sequences in order."""
        return iter(self._running)

    @property
    def held_blocks(self) -> int:
        """Return the KV blocks that running sequences hold, a shared one once."""
        return self._pool.held

    def known_blocks(self, prompt: Row, most_blocks: int) -> int:
        """Return how many of a prompt's first `most_blocks` blocks lie in the pool, held or free; changes nothing."""
        return self._pool.known_blocks(prompt, most_blocks)

    def output_tokens(self, entry: VllmEntry) -> int:
        """Return the tokens that a sequence has produced, running or not."""
        return self._pack.output_tokens(entry) if entry.phase is Phase.DECODE else entry.output_tokens

    def blocks_of(self, entry: VllmEntry) -> int:
        """Return the blocks that a sequence holds while a step is in progress."""
        if entry.phase is not Phase.DECODE:
            return entry.blocks
        return -(-(entry.input_tokens + self._pack.output_tokens(entry)) // self._parameters.block_tokens)

    def plan(self, waiting: WaitingLine, at: float) -> StepPlan:
        """Fill the next step: waiting sequences may join it, running ones be preempted for it.

        In a plan of several steps nothing waiting could join a later one: while all decode, free blocks and the
        tokens left in a step do not grow, and a seat comes free with an end only.
        """
        preempted: list[VllmEntry] = []
        while True:
            filling = Filling(self._parameters, self._pool, self._pack, self._running, waiting)
            filling.fill()
            preempted += filling.preempted
            # Under the priority policy the first in line may be the victim; a step of nothing takes no time.
            if filling.serves_somebody or not filling.preempted:
                break
        for entry in filling.joined:
            self._joined_total += 1
            entry.joined = self._joined_total
            entry.started_at = at if entry.started_at is None else entry.started_at
        self._pieces = filling.pieces()
        self._held_up = filling.held_up()
        for entry in self._held_up:
            self._pack.remove(entry)
        alike = not (self._pieces or self._held_up or preempted) and len(self._pack) > 0
        steps = self._steps_alike() if alike else 1
        return StepPlan(steps, self._work(), len(filling.joined), tuple(preempted))

    def pass_steps(self, ended: int, *, more: bool) -> None:
        """Let `ended` steps of the plan end, at least 1; with `more` the next one of it has begun."""
        begun = ended if more else ended - 1
        self._pool.take(self._pack.blocks_for(1 + begun) - self._pack.blocks_for(1))
        self._pack.advance(ended)

    def settle(self) -> list[VllmEntry]:
        """End the plan, and return those whose prompt is done, in order; the step gave each of them a token."""
        produced = []
        for entry in self._pieces:
            entry.computed_tokens += entry.piece_tokens
            entry.piece_tokens = 0
            if entry.computed_tokens == entry.known_tokens:
                entry.output_tokens += 1
                produced.append(entry)
        for entry in (*self._held_up, *produced):
            self._pack.add(entry)
        self._pieces = self._held_up = ()
        return produced

    def take_ended(self) -> list[VllmEntry]:
        """Take out those that have produced their last token, in the order in which they joined."""
        ended = self._pack.take_ended()
        for entry in ended:
            self._leave(entry)
        return ended

    def remove(self, entry: VllmEntry) -> None:
        """Take out a running sequence."""
        if entry.phase is Phase.DECODE:
            self._pack.remove(entry)
        self._leave(entry)

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold."""
        broken = list(self._pool.check((entry.holding, self.blocks_of(entry)) for entry in self._running))
        if len(self._running) > self._parameters.max_num_seqs:
            broken.append(f"{len(self._running)} sequences run")
        decoding = [entry for entry in self._running if entry.phase is Phase.DECODE]
        if len(decoding) != len(self._pack):
            broken.append(f"{len(decoding)} sequences decode, {len(self._pack)} are counted")
        if sum(entry.input_tokens + self.output_tokens(entry) for entry in decoding) != self._pack.resident_tokens:
            broken.append("resident tokens are not those of the decoding sequences")
        return tuple(broken)

    def _leave(self, entry: VllmEntry) -> None:
        self._running.remove(entry)
        self._pool.release(entry.holding, entry.blocks, known_blocks=0)

    def _steps_alike(self) -> int:
        """Return how many steps end before somebody does or a block could be lacking; the first has its blocks."""
        blocks = self._pool.free + self._pack.blocks_for(1)
        return min(self._pack.steps_to_first_end, self._pack.steps_within(blocks))

    def _work(self) -> StepWork:
        pieces = [(entry.piece_tokens, entry.computed_tokens) for entry in self._pieces]
        return StepWork(
            prefill_tokens=sum(piece for piece, _ in pieces),
            attention_pairs=sum(piece * before + piece * (piece + 1) // 2 for piece, before in pieces),
            decoding_sequences=len(self._pack),
            resident_tokens=self._pack.resident_tokens,
        )
