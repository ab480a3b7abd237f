"""Thresholds on polled queue depth and KV use: what the Gateway API inference extension and its kin do."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor

from llmshed.admission.events import Event
from llmshed.admission.reasons import Reason
from llmshed.admission.replica import Replica
from llmshed.admission.request import Lane, PriorityClass
from llmshed.simulation.model import ReplicaModel
from llmshed.whatif.gates.books import Books
from llmshed.whatif.gates.line import Rank
from llmshed.whatif.gates.rule import Rule, TurnAway
from llmshed.whatif.gates.work import Work


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The extension's own defaults; docs/whatif-policies.md says where each stands.

    Args:
        queue_requests: depth of an engine's queue at which it counts as saturated.
        kv_ratio: used share of its KV cache likewise.
        refresh_seconds: interval between two looks at an engine's metrics.
        stale_seconds: age from which metrics count as those of a saturated engine.
        most_waiting: most requests that are held at once in one line.
        hold_seconds: how long one is held.
    """

    queue_requests: float = 5.0
    kv_ratio: float = 0.8
    refresh_seconds: float = 0.05
    stale_seconds: float = 0.2
    most_waiting: int = 5000
    hold_seconds: float = 60.0

    def __post_init__(self) -> None:
        """Refuse thresholds that hold everything, and metrics that are always stale."""
        for name in ("queue_requests", "kv_ratio", "refresh_seconds", "stale_seconds", "most_waiting", "hold_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name):g}; accepted is more than 0")
        if self.stale_seconds < self.refresh_seconds:
            raise ValueError(
                f"stale_seconds {self.stale_seconds:g} is below refresh_seconds {self.refresh_seconds:g}:"
                " metrics would be stale between two looks"
            )


@dataclass(frozen=True, slots=True)
class Metrics:
    """What was read of one engine, and when."""

    queued_requests: int
    kv_ratio: float
    read_at: float


class PolledThresholds(Rule):
    """Work is held while the mean saturation of the engines, as last read, is 1 or more.

    Saturation of an engine is the larger of queue / queue threshold and KV use / KV threshold, and 1 with metrics that
    are stale. While saturated, sheddable work (bulk, and the class low) is refused as it comes, the rest is held by
    class and then in order of arrival. Work goes to the engine with the shortest queue and the least KV in use as last
    read; requests that were sent since the last look are not in those metrics, which is the weakness of the method.
    Where two engines look alike the one with fewer requests outstanding takes it.

    Args:
        books: the replicas.
        models: the engines, of which nothing is read but queue depth and KV in use.
        kv_tokens: size of an engine's KV cache.
        thresholds: see there.
    """

    def __init__(
        self, books: Books, models: Mapping[str, ReplicaModel], kv_tokens: int, thresholds: Thresholds | None = None
    ) -> None:
        """Start without metrics: they are read at the first event."""
        self._books = books
        self._models = models
        self._kv_tokens = kv_tokens
        self._thresholds = thresholds or Thresholds()
        self._metrics: dict[str, Metrics] = {}
        self._read_in: int | None = None
        self.most_waiting = self._thresholds.most_waiting

    def observe(self, event: Event, now: float) -> None:  # noqa: ARG002 - rules look at what they need
        """Read the metrics once in each interval in which anything happens.

        While nothing happens at all nothing changes either, so that what was not read would have told the same.
        """
        interval = floor(now / self._thresholds.refresh_seconds)
        if interval == self._read_in:
            return
        self._read_in = interval
        for name, model in self._models.items():
            self._metrics[name] = Metrics(model.queue_size, model.held_kv_tokens / self._kv_tokens, now)

    def saturation(self, candidates: Iterable[Replica], now: float) -> float:
        """Return the mean saturation of some replicas, 1 for each whose metrics are stale or were never read."""
        each = [self._saturation_of(replica.spec.name, now) for replica in candidates]
        return sum(each) / len(each)

    def turn_away(self, work: Work, candidates: Sequence[Replica], now: float) -> TurnAway | None:
        """Refuse sheddable work while the engines are saturated."""
        saturation = self.saturation(candidates, now)
        if saturation < 1 or not sheddable(work):
            return None
        return TurnAway(
            self._binding(candidates), f"the engines' saturation is {saturation:.2f}, and this is sheddable"
        )

    def place(self, work: Work, candidates: Sequence[Replica], behind: Iterable[Work], now: float) -> Replica | None:  # noqa: ARG002 - rules look at what they need
        """Return the engine that looks least used, while the engines are not saturated."""
        if self.saturation(candidates, now) >= 1:
            return None
        deepest = max(self._metrics[replica.spec.name].queued_requests for replica in candidates) or 1
        return min(
            candidates,
            key=lambda replica: (
                self._metrics[replica.spec.name].queued_requests / deepest + self._metrics[replica.spec.name].kv_ratio,
                len(replica.ledger),
                replica.spec.name,
            ),
        )

    def rank(self, work: Work) -> Rank:
        """Return the class, sheddable work after all others, then the order of arrival."""
        return (int(sheddable(work)), work.chosen.priority_class.rank, work.order)

    def waits_until(self, work: Work) -> float:
        """Return when work has been held for as long as anything is."""
        return work.request.arrived_at + self._thresholds.hold_seconds

    def late(self, work: Work) -> TurnAway:  # noqa: ARG002 - rules look at what they need
        """Return that it was held for too long."""
        return TurnAway(Reason.DEADLINE_INFEASIBLE, f"held for {self._thresholds.hold_seconds:g} s")

    def displaced(self, work: Work) -> TurnAway:
        """Return that too many are held."""
        replicas = work.candidates(self._books.replicas)
        return TurnAway(self._binding(replicas), f"{self.most_waiting} requests are held already")

    def next_look(self, now: float, first: Iterable[Work]) -> float | None:
        """Return the start of the next interval while anything is held or runs, since metrics change then."""
        if not self._books.running and not any(True for _ in first):
            return None
        seconds = self._thresholds.refresh_seconds
        upcoming = floor(now / seconds) + 1
        # The product may be rounded to just below the instant that divides into it: look there, not a moment before.
        while floor(upcoming * seconds / seconds) < upcoming or upcoming * seconds <= now:
            upcoming += 1
        return upcoming * seconds

    def _saturation_of(self, name: str, now: float) -> float:
        metrics = self._metrics.get(name)
        if metrics is None or now - metrics.read_at > self._thresholds.stale_seconds:
            return 1.0
        return max(
            metrics.queued_requests / self._thresholds.queue_requests, metrics.kv_ratio / self._thresholds.kv_ratio
        )

    def _binding(self, replicas: Iterable[Replica]) -> Reason:
        """Return seats where queues bind, tokens where KV does."""
        read = [metrics for r in replicas if (metrics := self._metrics.get(r.spec.name)) is not None]
        queues = sum(metrics.queued_requests / self._thresholds.queue_requests for metrics in read)
        kv = sum(metrics.kv_ratio / self._thresholds.kv_ratio for metrics in read)
        return Reason.CONCURRENCY_LIMIT if queues >= kv else Reason.TOKEN_BUDGET_EXHAUSTED


def sheddable(work: Work) -> bool:
    """Say whether work is of the kind that is shed first: bulk, overflow, or declared low."""
    return work.chosen.lane is not Lane.INTERACTIVE or work.chosen.priority_class is PriorityClass.LOW
