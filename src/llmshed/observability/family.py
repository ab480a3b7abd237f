"""A metric with its labelled children at hand: looking one up by the library takes longer than counting with it."""

from typing import Generic, TypeVar

from prometheus_client import Counter, Gauge, Histogram

Instrument = TypeVar("Instrument", Counter, Gauge, Histogram)


class Family(Generic[Instrument]):
    """All children of one metric; label values must come from a set that clients cannot extend."""

    def __init__(self, metric: Instrument) -> None:
        self._metric: Instrument = metric
        self._children: dict[tuple[str, ...], Instrument] = {}

    def of(self, *labels: str) -> Instrument:
        """Return the child with these label values, in the order of the metric's label names; none for a plain one."""
        child = self._children.get(labels)
        if child is None:
            child = self._metric.labels(*labels) if labels else self._metric
            self._children[labels] = child
        return child

    def forget(self, *labels: str) -> None:
        """Export the child with these label values no more, if there is one."""
        if self._children.pop(labels, None) is not None:
            self._metric.remove(*labels)
