"""The queue delay signal of one window, in memory that does not grow with its arrivals.

Whether the 95th percentile of n waits is above a bound b needs no wait to be kept. By nearest rank it is the wait at
place ceil(0.95 n), so it exceeds b exactly when more than n / 20 of the waits do:

    p95 > b    <=>  20 x #(waits > b) > n
    p95 >= b   <=>  20 x #(waits >= b) > n

So each window counts against the bounds that are in force while it lasts. The value itself, which is only told, comes
from a sketch and is true to within 1 %.
"""

import math
from typing import NamedTuple

from llmshed.workload.sketch import LARGEST, QuantileSketch

_ONE_IN = 20
"""The 95th percentile leaves one wait in so many above it."""


class DelayBounds(NamedTuple):
    """What the waits of a window are held against, in seconds; a bound that nothing asks for is infinite.

    Args:
        objective: the objective; waits above it are pressure.
        entry: the next rung's bound, to be exceeded.
        exit: the bound to stay below on the way back.
    """

    objective: float
    entry: float
    exit: float


class DelayWindow:
    """Counts of one window.

    Args:
        bounds: what its waits are held against.
        sample_minimum: fewest arrivals by which it is judged, unless somebody waits too long.
        started_at: clock reading at its beginning.
    """

    __slots__ = (
        "_above_entry", "_above_objective", "_endless", "_least", "_oldest", "_reaching_exit", "_sketch", "arrivals",
        "bounds", "let_in_tokens", "offered_tokens", "started_at",
    )  # fmt: skip

    def __init__(self, bounds: DelayBounds, sample_minimum: int, started_at: float) -> None:
        self.bounds = bounds
        self.started_at = started_at
        self.arrivals = 0
        self.offered_tokens = 0
        self.let_in_tokens = 0
        self._least = sample_minimum
        self._above_objective = 0
        self._above_entry = 0
        self._reaching_exit = 0
        self._endless = 0
        self._oldest = 0.0
        self._sketch = QuantileSketch()

    def sample(self, seconds: float) -> None:
        """Count the wait of one arrival, >= 0 and infinite for an estimate without an end."""
        objective, entry, exit_seconds = self.bounds
        self.arrivals += 1
        if seconds > objective:
            self._above_objective += 1
        if seconds > entry:
            self._above_entry += 1
        if seconds >= exit_seconds:
            self._reaching_exit += 1
        if seconds < LARGEST:
            self._sketch.add(seconds)
        else:
            self._endless += 1

    def sample_waiting(self, ages_seconds: tuple[float, ...]) -> None:
        """Count those that wait at the window's end, each as an arrival with its age."""
        for age in ages_seconds:
            self.sample(age)
        self._oldest = max(ages_seconds, default=0.0)

    def under_pressure(self) -> bool:
        """Say whether the signal is above the objective."""
        return self._judged(self.bounds.objective) and _ONE_IN * self._above_objective > self.arrivals

    def above_entry(self) -> bool:
        """Say whether the signal is above the entry bound."""
        return self._judged(self.bounds.entry) and _ONE_IN * self._above_entry > self.arrivals

    def below_exit(self, patience_seconds: float) -> bool:
        """Say whether the signal is below the exit bound, or too few came to tell and none waits beyond patience."""
        return not self._judged(patience_seconds) or _ONE_IN * self._reaching_exit <= self.arrivals

    def signal_seconds(self) -> float | None:
        """Return the 95th percentile to within 1 %, infinite if the estimates had no end; None with no arrival."""
        if not self.arrivals:
            return None
        rank = math.ceil(self.arrivals * (_ONE_IN - 1) / _ONE_IN) - 1
        return self._sketch.at_rank(rank) if rank < self._sketch.count else math.inf

    def check(self) -> tuple[str, ...]:
        """Return the invariants that do not hold."""
        counts = (self._above_objective, self._above_entry, self._reaching_exit, self._endless)
        broken = [f"{count} of {self.arrivals} waits counted" for count in counts if not 0 <= count <= self.arrivals]
        if self._sketch.count + self._endless != self.arrivals:
            broken.append("waits that stand in no sketch")
        return tuple(broken)

    def _judged(self, patience_seconds: float) -> bool:
        return self.arrivals >= self._least or self._oldest > patience_seconds
