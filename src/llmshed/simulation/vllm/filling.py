"""Filling one step: first what runs, in order, preempting for it if need be; then what waits.

After `Scheduler.schedule` of vLLM's v1/core/sched/scheduler.py: the token budget of a step goes to running sequences in
the order in which they joined, then to waiting ones, strictly from the front. A step that preempted somebody lets
nobody join.
"""

from llmshed.simulation.sequences import Phase
from llmshed.simulation.vllm.blocks import BlockPool
from llmshed.simulation.vllm.entry import VllmEntry
from llmshed.simulation.vllm.line import WaitingLine
from llmshed.simulation.vllm.pack import DecodingPack
from llmshed.simulation.vllm.parameters import SchedulingPolicy, VllmParameters


class Filling:
    """One step while it is filled; reads like the engine's own loop.

    All in front of `index` of the running sequences have their tokens of this step, those behind it have none.
    """

    def __init__(
        self,
        parameters: VllmParameters,
        pool: BlockPool,
        pack: DecodingPack,
        running: list[VllmEntry],
        waiting: WaitingLine,
    ) -> None:
        """Begin with an empty step; pool, pack and both lists are changed by `fill`."""
        self._parameters = parameters
        self._pool = pool
        self._pack = pack
        self._running = running
        self._waiting = waiting
        self._budget_tokens = parameters.max_num_batched_tokens
        self._index = 0
        self.joined: list[VllmEntry] = []
        self.preempted: list[VllmEntry] = []

    @property
    def serves_somebody(self) -> bool:
        """Say whether anybody has tokens in this step."""
        return self._index > 0

    def fill(self) -> None:
        """Give out the tokens of the step, and the blocks for them."""
        self._serve_leading_decodes()
        while self._index < len(self._running) and self._budget_tokens:
            if not self._serve(self._running[self._index]):
                break
            self._index += 1
        while not self.preempted and self._budget_tokens and len(self._running) < self._parameters.max_num_seqs:
            entry = self._waiting.head
            if entry is None or not self._let_join(entry):
                break

    def pieces(self) -> tuple[VllmEntry, ...]:
        """Return those of whose prompt the step works through a piece, in order."""
        served = self._running[: self._index]
        return tuple(entry for entry in served if entry.phase is not Phase.DECODE)

    def held_up(self) -> tuple[VllmEntry, ...]:
        """Return the decoding sequences that get no token in this step."""
        return tuple(entry for entry in self._running[self._index :] if entry.phase is Phase.DECODE)

    def _serve_leading_decodes(self) -> None:
        """Serve the decoding sequences at once, when they stand before all others and nobody can lack a block."""
        decoding = len(self._pack)
        blocks = self._pack.blocks_for(1)
        in_front = all(entry.phase is not Phase.DECODE for entry in self._running[decoding:])
        if in_front and blocks <= self._pool.free:
            self._pool.take(blocks)
            self._budget_tokens -= decoding
            self._index = decoding

    def _serve(self, entry: VllmEntry) -> bool:
        """Give one running sequence its tokens; False when it had to be preempted itself."""
        if entry.phase is Phase.DECODE:
            piece = 1
            blocks = 1 if self._pack.is_at_border(entry) else 0
        else:
            piece = self._piece(entry.known_tokens - entry.computed_tokens)
            blocks = self._blocks(entry.computed_tokens + piece) - entry.blocks
        while blocks > self._pool.free:
            victim = self._victim()
            self._preempt(victim)
            if victim is entry:
                return False
        self._pool.take(blocks)
        self._budget_tokens -= piece
        if entry.phase is not Phase.DECODE:
            self._note_piece(entry, piece)
        return True

    def _let_join(self, entry: VllmEntry) -> bool:
        """Let the head of the line run if tokens and blocks allow; False when it has to wait."""
        parameters, block_tokens = self._parameters, self._parameters.block_tokens
        # The newest token is always computed, since it gives the next one.
        found = self._pool.find(entry.holding, (entry.known_tokens - 1) // block_tokens)
        found_tokens = found.blocks * block_tokens
        rest = self._bounded(entry.known_tokens - found_tokens)
        if rest > self._budget_tokens and not parameters.chunked_prefill:
            return False
        piece = min(rest, self._budget_tokens)
        needed = self._blocks(found_tokens + piece)
        reserved = self._blocks(entry.known_tokens) if parameters.scheduler_reserve_full_isl else needed
        spare = parameters.watermark_blocks if self._running else 0
        if reserved - found.blocks + found.idle + spare > self._pool.free:
            return False
        self._waiting.pop()
        self._pool.claim(entry.holding, found)
        self._pool.take(needed - found.blocks)
        entry.phase = Phase.PREFILL
        entry.computed_tokens = found_tokens
        self._note_piece(entry, piece)
        self._budget_tokens -= piece
        self._running.append(entry)
        self._index += 1
        self.joined.append(entry)
        return True

    def _preempt(self, victim: VllmEntry) -> None:
        position = self._running.index(victim)
        served = position < self._index
        was_decoding = victim.phase is Phase.DECODE
        held = victim.blocks
        if was_decoding:
            at_border = self._pack.is_at_border(victim)
            self._pack.remove(victim)
            held = victim.blocks + (1 if served and at_border else 0)
        if served:
            self._budget_tokens += 1 if was_decoding else victim.piece_tokens
            self._index -= 1
        del self._running[position]
        known_blocks = victim.computed_tokens // self._parameters.block_tokens
        self._pool.unpublish(victim.holding, known_blocks)
        self._pool.release(victim.holding, held, known_blocks=known_blocks)
        victim.phase = Phase.QUEUED
        victim.blocks = victim.computed_tokens = victim.piece_tokens = 0
        self._waiting.put_back(victim)
        self.preempted.append(victim)

    def _victim(self) -> VllmEntry:
        if self._parameters.policy is SchedulingPolicy.PRIORITY:
            return max(self._running, key=lambda entry: entry.rank)
        return self._running[-1]

    def _note_piece(self, entry: VllmEntry, piece: int) -> None:
        entry.piece_tokens = piece
        entry.blocks = self._blocks(entry.computed_tokens + piece)
        self._pool.publish(entry.holding, (entry.computed_tokens + piece) // self._parameters.block_tokens)

    def _piece(self, rest_tokens: int) -> int:
        return min(self._bounded(rest_tokens), self._budget_tokens)

    def _bounded(self, rest_tokens: int) -> int:
        threshold = self._parameters.long_prefill_token_threshold
        return min(rest_tokens, threshold) if threshold else rest_tokens

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self._parameters.block_tokens)
