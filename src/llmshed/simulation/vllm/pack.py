"""The decoding sequences, moved forward together.

Symbols: s counts the steps of the pack. A sequence that has C tokens in the KV cache at step s has C + n at step s + n;
it needs a block more in the step that begins with C a multiple of B. So what matters of C is its remainder, and

    borders(r) = decoding sequences with (C - s) mod B = r          does not change with s
    blocks taken by the step that begins at s = borders(-s mod B)
    blocks taken by n steps = floor(n / B) x size + those of the n mod B steps that are left

A long stretch so costs as much as a short one, and as little with many sequences as with few.
"""

from heapq import heappop, heappush

from llmshed.simulation.sequences import Phase
from llmshed.simulation.vllm.entry import VllmEntry


class DecodingPack:
    """Sequences that get one token in each step."""

    def __init__(self, block_tokens: int) -> None:
        """Start empty, with blocks of B tokens."""
        self._block_tokens = block_tokens
        self._borders = [0] * block_tokens
        self._step = 0
        self._size = 0
        self._resident_tokens = 0
        self._ends: list[tuple[int, int, VllmEntry]] = []

    def __len__(self) -> int:
        """Return the decoding sequences."""
        return self._size

    @property
    def resident_tokens(self) -> int:
        """Return the tokens that the next step attends to: prompt and output of all."""
        return self._resident_tokens

    @property
    def steps_to_first_end(self) -> int:
        """Return after how many steps the first sequence ends; somebody must be decoding."""
        while not self._is_current(*self._ends[0]):
            heappop(self._ends)
        return self._ends[0][0] - self._step

    def add(self, entry: VllmEntry) -> None:
        """Let a sequence with all but its newest token computed decode from the next step on."""
        entry.phase = Phase.DECODE
        entry.began_at_step = self._step - entry.output_tokens
        self._borders[(entry.computed_tokens - self._step) % self._block_tokens] += 1
        self._size += 1
        self._resident_tokens += entry.known_tokens
        heappush(self._ends, (entry.began_at_step + entry.last_token, entry.joined, entry))

    def remove(self, entry: VllmEntry) -> None:
        """Let a sequence decode no longer; its counts are those of now, its blocks those that it has written to."""
        entry.output_tokens = self.output_tokens(entry)
        entry.computed_tokens = entry.known_tokens - 1
        entry.blocks = -(-entry.computed_tokens // self._block_tokens)
        self._borders[(entry.computed_tokens - self._step) % self._block_tokens] -= 1
        self._size -= 1
        self._resident_tokens -= entry.known_tokens
        entry.phase = Phase.PREFILL

    def output_tokens(self, entry: VllmEntry) -> int:
        """Return the tokens that one of them has produced."""
        return self._step - entry.began_at_step

    def is_at_border(self, entry: VllmEntry) -> bool:
        """Say whether one of them needs a new block in the next step."""
        return (entry.input_tokens + self._step - entry.began_at_step - 1) % self._block_tokens == 0

    def blocks_for(self, steps: int) -> int:
        """Return the blocks that the next `steps` steps take together."""
        rounds, rest = divmod(steps, self._block_tokens)
        return rounds * self._size + sum(self._blocks_of_step(ahead) for ahead in range(rest))

    def steps_within(self, blocks: int) -> int:
        """Return how many steps can begin before more than `blocks` are needed; somebody must be decoding."""
        rounds, rest = divmod(blocks, self._size)
        steps = rounds * self._block_tokens
        for ahead in range(self._block_tokens):
            rest -= self._blocks_of_step(ahead)
            if rest < 0:
                break
            steps += 1
        return steps

    def advance(self, steps: int) -> None:
        """Let `steps` steps end; none may lie behind the first end."""
        self._step += steps
        self._resident_tokens += steps * self._size

    def take_ended(self) -> list[VllmEntry]:
        """Take out those that have produced their last token, in the order in which they joined."""
        ended = []
        while self._ends and self._ends[0][0] <= self._step:
            place = heappop(self._ends)
            if self._is_current(*place):
                self.remove(place[2])
                ended.append(place[2])
        return ended

    def _blocks_of_step(self, ahead: int) -> int:
        return self._borders[-(self._step + ahead) % self._block_tokens]

    def _is_current(self, end: int, joined: int, entry: VllmEntry) -> bool:
        """Say whether an end in the heap still holds: the sequence decodes and was not held up since."""
        decodes = entry.phase is Phase.DECODE and entry.joined == joined
        return decodes and entry.began_at_step + entry.last_token == end
