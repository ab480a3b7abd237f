"""Waiting requests in the order of their arrival, with running sums."""

from collections import OrderedDict
from collections.abc import Iterator

from llmshed.admission.queueing.waiting import Waiting


class Row:
    """First come, first served; removal from anywhere is O(1).

    Attributes:
        tokens, input_tokens, sequences: sums over what stands here.
    """

    __slots__ = ("_waiting", "input_tokens", "sequences", "tokens")

    def __init__(self) -> None:
        """Start empty."""
        self._waiting: OrderedDict[int, Waiting] = OrderedDict()
        self.tokens = 0
        self.input_tokens = 0
        self.sequences = 0

    def __len__(self) -> int:
        """Return how many stand here."""
        return len(self._waiting)

    def __contains__(self, key: int) -> bool:
        """Say whether a request stands here."""
        return key in self._waiting

    def __iter__(self) -> Iterator[Waiting]:
        """Yield what stands here, oldest first."""
        return iter(self._waiting.values())

    def add(self, waiting: Waiting) -> None:
        """Take a request in at the place of its arrival: O(1) for the newest, else O(all that stand here)."""
        newest = self.newest
        self._waiting[waiting.key] = waiting
        if newest is not None and newest.arrival > waiting.arrival:
            for key in [other.key for other in self if other.arrival > waiting.arrival]:
                self._waiting.move_to_end(key)
        self.tokens += waiting.total_tokens
        self.input_tokens += waiting.input_tokens
        self.sequences += waiting.sequences

    def remove(self, key: int) -> None:
        """Take a request out that stands here."""
        waiting = self._waiting.pop(key)
        self.tokens -= waiting.total_tokens
        self.input_tokens -= waiting.input_tokens
        self.sequences -= waiting.sequences

    @property
    def oldest(self) -> Waiting | None:
        """Return the one that came first; None when nobody stands here."""
        return next(iter(self._waiting.values()), None)

    @property
    def newest(self) -> Waiting | None:
        """Return the one that came last; None when nobody stands here."""
        return next(reversed(self._waiting.values()), None)

    def check(self) -> list[str]:
        """Return the invariants that do not hold: the order is that of arrival, the sums equal the recount."""
        wrong = []
        arrivals = [waiting.arrival for waiting in self]
        if arrivals != sorted(arrivals):
            wrong.append("a row is not in the order of arrival")
        for name in ("tokens", "input_tokens", "sequences"):
            recount = sum(getattr(waiting, "total_tokens" if name == "tokens" else name) for waiting in self)
            if getattr(self, name) != recount:
                wrong.append(f"{name} of a row is {getattr(self, name)}, those in it sum to {recount}")
        return wrong
