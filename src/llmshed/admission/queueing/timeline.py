"""Keys by a number each, least first: a heap from which any key may be withdrawn at any time.

A withdrawn key stays in the heap as garbage until it comes to the top. Garbage is bounded: as soon as it outweighs what
is live, the heap is built anew, which costs each withdrawal a constant on average.
"""

import heapq

GARBAGE_KEPT = 64
"""Garbage below this is not worth building anew."""


class Timeline:
    """A priority queue of keys; every operation is O(log n) on average."""

    __slots__ = ("_heap", "_live")

    def __init__(self) -> None:
        """Start empty."""
        self._heap: list[tuple[float, int]] = []
        self._live: dict[int, float] = {}

    def __len__(self) -> int:
        """Return how many keys are live."""
        return len(self._live)

    def add(self, key: int, at: float) -> None:
        """Set a key, which may not be there yet, at a number."""
        self._live[key] = at
        heapq.heappush(self._heap, (at, key))

    def discard(self, key: int) -> None:
        """Withdraw a key; one that is not there changes nothing."""
        if self._live.pop(key, None) is not None:
            self._tidy()

    def first(self) -> float | None:
        """Return the least number of a live key; None without one."""
        heap, live = self._heap, self._live
        while heap and live.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def take_due(self, now: float) -> list[int]:
        """Remove the keys whose number is at most `now` and return them, least first."""
        due: list[int] = []
        if not self._heap or self._heap[0][0] > now:  # as mostly
            return due
        while self._heap and self._heap[0][0] <= now:
            at, key = heapq.heappop(self._heap)
            if self._live.get(key) == at:
                del self._live[key]
                due.append(key)
        if due:
            self._tidy()
        return due

    def check(self) -> list[str]:
        """Return the invariants that do not hold: what is live is in the heap, and garbage is bounded."""
        wrong = []
        held = set(self._heap)
        wrong += [f"key {key} at {at} is not in the heap" for key, at in self._live.items() if (at, key) not in held]
        if len(self._heap) > 2 * len(self._live) + GARBAGE_KEPT:
            wrong.append(f"{len(self._heap)} heap entries for {len(self._live)} live keys")
        return wrong

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._live) + GARBAGE_KEPT:
            self._heap = [(at, key) for key, at in self._live.items()]
            heapq.heapify(self._heap)
