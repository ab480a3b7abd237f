"""The waiting sequences of the simulated vLLM replica."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from llmshed.simulation.vllm.entry import VllmEntry
from llmshed.simulation.vllm.parameters import SchedulingPolicy


class WaitingLine:
    """Waiting sequences in the order in which they will be served.

    First come, first served: arrivals at the tail, preempted ones in front of all, the last preempted foremost. By
    priority: everybody at the place of its priority and arrival.
    """

    def __init__(self, policy: SchedulingPolicy) -> None:
        """Start empty."""
        self._policy = policy
        self._heap: list[tuple[tuple[int, int], VllmEntry]] = []
        self._tail = 0
        self._front = 0

    def __len__(self) -> int:
        """Return the waiting sequences."""
        return len(self._heap)

    def __iter__(self) -> Iterator[VllmEntry]:
        """Yield the waiting sequences, the next to be served first."""
        return (entry for _, entry in sorted(self._heap, key=lambda place: place[0]))

    @property
    def head(self) -> VllmEntry | None:
        """Return the next to be served; None when nobody waits."""
        return self._heap[0][1] if self._heap else None

    def join(self, entry: VllmEntry) -> None:
        """Let an arrival wait."""
        self._tail += 1
        self._put(entry, self._tail)

    def put_back(self, entry: VllmEntry) -> None:
        """Let a preempted sequence wait."""
        self._front -= 1
        self._put(entry, self._front)

    def pop(self) -> VllmEntry:
        """Take the head out; there must be one."""
        return heappop(self._heap)[1]

    def drop_abandoned(self) -> None:
        """Take out those whose client is gone."""
        self._heap = [place for place in self._heap if not place[1].abandoned]
        heapify(self._heap)

    def _put(self, entry: VllmEntry, turn: int) -> None:
        place = (0, turn) if self._policy is SchedulingPolicy.FCFS else entry.rank
        heappush(self._heap, (place, entry))
