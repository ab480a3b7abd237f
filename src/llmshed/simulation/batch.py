"""The running batch: who is in it, and how far each has come without a count kept for each.

A decoding sequence gets its tokens at the same pace as every other. So the batch counts its decode steps once, and a
sequence remembers at which of them it began: its tokens follow when somebody asks. Ends lie in a heap by the decode
step at which they are due. A stretch of n decode steps over B sequences costs O(log B), not O(n x B).
"""

from collections.abc import Iterable
from heapq import heappop, heappush

from llmshed.simulation.cost import StepWork
from llmshed.simulation.pace import Pace
from llmshed.simulation.sequences import Entry, Phase


class RunningBatch:
    """Running sequences in the order in which they joined, which is that of the queue."""

    def __init__(self, pace: Pace, positions_per_sequence: int) -> None:
        """Start empty.

        Args:
            pace: tokens of decode steps.
            positions_per_sequence: positions that one decoding sequence takes in a step: 1, and the guessed tokens
                that are verified with it.
        """
        self._pace = pace
        self._positions = positions_per_sequence
        self._members: dict[int, Entry] = {}
        self._prefilling: list[Entry] = []
        self._left: set[int] = set()
        self._ends: list[tuple[int, int, Entry]] = []
        self._steps = 0
        # Over the decoding sequences: tokens resident when each began to decode, and the decode steps at which it did.
        self._first_resident_tokens = 0
        self._first_steps = 0

    def __len__(self) -> int:
        """Return the running sequences."""
        return len(self._members)

    @property
    def members(self) -> Iterable[Entry]:
        """Return the running sequences in order."""
        return self._members.values()

    @property
    def prefilling(self) -> list[Entry]:
        """Return those of which part of the prompt is still to be worked through, in order."""
        return self._prefilling

    @property
    def decoding(self) -> int:
        """Return how many sequences decode."""
        return len(self._members) - len(self._prefilling)

    @property
    def someone_left(self) -> bool:
        """Say whether a client of a running sequence is gone and the engine has not noticed."""
        return bool(self._left)

    @property
    def next_tokens(self) -> int:
        """Return TGI's `current_tokens`: one for each decoding sequence, and the next pieces of unfinished prompts."""
        return self.decoding + sum(entry.next_prefill_tokens for entry in self._prefilling)

    @property
    def steps_to_first_end(self) -> int:
        """Return after how many decode steps the first sequence ends its chunk; somebody must be decoding."""
        self._drop_stale_ends()
        return self._ends[0][0] - self._steps

    def join(self, entries: Iterable[Entry]) -> None:
        """Take in sequences whose first piece of prompt is worked through in the coming step."""
        for entry in entries:
            self._members[entry.key] = entry
            self._prefilling.append(entry)

    def note_left(self, entry: Entry) -> None:
        """Note that the client of a running sequence is gone."""
        self._left.add(entry.key)

    def decode_work(self) -> StepWork:
        """Return the work of the coming decode step; residency counts what lies in the KV before it."""
        decoding = self.decoding
        steps = decoding * self._steps - self._first_steps
        resident = self._first_resident_tokens + self._pace.tokens(steps)
        return StepWork(decoding_sequences=decoding * self._positions, resident_tokens=resident)

    def pass_decode_steps(self, count: int) -> None:
        """Let `count` decode steps end; none may lie behind the first end."""
        self._steps += count

    def begin_decoding(self, entries: list[Entry]) -> None:
        """Note that these prompts are done and that each gave the first token of its chunk."""
        self._prefilling = [entry for entry in self._prefilling if entry.prefilling]
        for entry in entries:
            entry.phase = Phase.DECODE
            entry.decoding_since = self._steps
            self._first_resident_tokens += entry.input_tokens + 1
            self._first_steps += self._steps
            heappush(self._ends, (self._steps + self._pace.steps(entry.chunk_end_tokens - 1), entry.order, entry))

    def take_due(self) -> list[Entry]:
        """Return those whose chunk has ended, in order, and forget their ends."""
        due = []
        while self._ends and self._ends[0][0] <= self._steps:
            entry = heappop(self._ends)[2]
            if self._is_current(entry):
                due.append(entry)
        return sorted(due, key=lambda entry: entry.order)

    def noticed_left(self) -> list[Entry]:
        """Return the decoding sequences whose client is gone: the step that ended had a token for them."""
        return [entry for key in self._left if not (entry := self._members[key]).prefilling]

    def remove(self, entry: Entry) -> None:
        """Let a sequence go."""
        del self._members[entry.key]
        self._left.discard(entry.key)
        if entry.decoding_since is None:
            self._prefilling.remove(entry)
            return
        self._first_resident_tokens -= entry.input_tokens + 1
        self._first_steps -= entry.decoding_since
        entry.decoding_since = None

    def chunk_tokens(self, entry: Entry) -> int:
        """Return the tokens of the present chunk that a sequence has produced."""
        if entry.decoding_since is None:
            return 0
        return min(1 + self._pace.tokens(self._steps - entry.decoding_since), entry.chunk_end_tokens)

    def _drop_stale_ends(self) -> None:
        while not self._is_current(self._ends[0][2]):
            heappop(self._ends)

    def _is_current(self, entry: Entry) -> bool:
        return self._members.get(entry.key) is entry and entry.decoding_since is not None
