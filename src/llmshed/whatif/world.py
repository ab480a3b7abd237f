"""The loop: one virtual clock for clients, gateway, gate and replicas.

The next thing to happen is the earliest of five: a replica's next change, the gate's wake-up, a request that the
gateway has done its own work on, a retry, and the next arrival of the trace. At equal times they go in that order,
replicas among themselves by their place, retries by the order in which they were made. Nothing else decides, so the
same trace, gate, setting and seed give the same run to the last digit.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from math import floor, inf
from typing import TYPE_CHECKING, assert_never

from llmshed.whatif.belief import Belief
from llmshed.whatif.clients_at_work import ClientsAtWork, Manner
from llmshed.whatif.door import Door
from llmshed.whatif.front import Front
from llmshed.whatif.gate import Gate
from llmshed.whatif.measures import Tally
from llmshed.whatif.replicas import Replicas
from llmshed.whatif.report import ReplicaUse, RunReport, TimePoint
from llmshed.whatif.rungs_used import RungsUsed
from llmshed.whatif.service import Service
from llmshed.whatif.setting import Setting
from llmshed.whatif.timeline import Timeline
from llmshed.whatif.visits import Visit
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest

if TYPE_CHECKING:
    from random import Random

MOST_TURNS_IN_PLACE = 10_000
"""Wake-ups and changes of replicas without time passing, after which something is taken to turn in place."""


class StuckError(RuntimeError):
    """A gate or a replica asks for the same instant again and again: a fault of it, never of the trace."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How a run is looked at, and when it ends.

    Args:
        quartile_edges: input tokens up to which a prompt belongs to quartile 1, 2 and 3.
        drain_seconds: virtual time after the last arrival at which the run ends, whatever is left.
        look_seconds: time between two looks at ledger and timeline, more than 0.
        most_tenants: tenants that are counted each for itself.
    """

    quartile_edges: tuple[int, int, int]
    drain_seconds: float = 600.0
    look_seconds: float = 10.0
    most_tenants: int = 100


class Source(IntEnum):
    """Where the next thing comes from, in the order at equal times."""

    REPLICA = 0
    GATE = 1
    FRONT = 2
    RETRY = 3
    TRACE = 4


def simulate(
    setting: Setting,
    gate: Gate,
    trace: Iterable[TracedRequest],
    clients: ClientModel | Manner,
    rng: "Random",
    plan: RunPlan,
    progress: Callable[[float], None] | None = None,
) -> RunReport:
    """Run a trace through a gate and return what came of it.

    Args:
        setting: a fresh one: its replicas are used up.
        gate: built on this setting, with its replicas up.
        trace: requests in the order of their arrival; one that goes back in time arrives with the one before it.
        clients: what refused clients do: one kind of client, or a manner that tells them apart.
        rng: source of every draw.
        plan: how the run is looked at, and when it ends.
        progress: told the virtual time at each look, in seconds.

    Raises:
        StuckError: the gate or a replica turns in place.
    """
    return World(setting, gate, trace, clients, rng, plan, progress).run()


class World:
    """One run. Every visit has one ending, or is counted as unfinished."""

    def __init__(
        self,
        setting: Setting,
        gate: Gate,
        trace: Iterable[TracedRequest],
        clients: ClientModel | Manner,
        rng: "Random",
        plan: RunPlan,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        """Stand at the beginning; see `simulate`."""
        self._plan = plan
        self._progress = progress
        self._kv_tokens = setting.parameters.kv_tokens
        self._trace: Iterator[TracedRequest] = iter(trace)
        self._next_traced = next(self._trace, None)
        self._front = Front(
            setting.gateway_seconds_per_request,
            setting.gateway_seconds_per_input_token,
            setting.gateway_seconds_per_output_token,
        )
        self._replicas = Replicas(setting.models)
        self._tally = Tally(plan.most_tenants)
        self._belief = Belief()
        self._timeline = Timeline()
        self._door = Door(setting, plan.quartile_edges)
        at_work = ClientsAtWork(clients, setting, rng)
        self._rungs = RungsUsed(setting.policy)
        self._service = Service(
            setting, gate, self._replicas, self._door, at_work, self._tally, self._belief, self._rungs
        )
        self._now = 0.0
        self._look_at = 0.0
        self._ends_by = 0.0 if self._next_traced is None else inf  # a ladder looks on where nobody ever comes
        self._window_seconds: float | None = None
        self._uses: tuple[ReplicaUse, ...] = ()
        self._gateway_busy_share = 0.0
        self._turns = 0
        self._turns_in_place = 0

    def run(self) -> RunReport:
        """Go on until nothing is left to happen, or the time to drain is over; see `simulate`."""
        while (due := self._next_due()) is not None:
            at, source = due
            self._look_until(min(at, self._ends_by))
            if at > self._ends_by:
                self._now = self._ends_by
                break
            self._turn(at, source)
        self._look()
        return self._report()

    def _next_due(self) -> tuple[float, Source] | None:
        """Return the next thing to happen, never before now; None when nothing is left."""
        times = (
            self._replicas.next_at,
            self._service.next_wakeup,
            self._front.next_at,
            self._service.next_retry_at,
            None if self._next_traced is None else self._next_traced.at_seconds,
        )
        best: tuple[float, Source] | None = None
        for source, at in zip(Source, times, strict=True):
            if at is not None and (best is None or at < best[0]):
                best = (at, source)
        return None if best is None else (max(best[0], self._now), best[1])

    def _turn(self, at: float, source: Source) -> None:
        """Let one thing happen."""
        self._guard(at, source)
        self._now = at
        match source:
            case Source.REPLICA:
                self._service.hear(self._replicas.advance_next(at), at)
            case Source.GATE:
                self._service.tick(at)
            case Source.FRONT:
                self._service.offer(self._front.pop(), at)
            case Source.RETRY:
                self._come(self._service.pop_retry())
            case Source.TRACE:
                self._arrive()
            case _:
                assert_never(source)

    def _guard(self, at: float, source: Source) -> None:
        """Count the turns, and refuse to turn in place for ever."""
        self._turns += 1
        if at > self._now or source not in {Source.REPLICA, Source.GATE}:
            self._turns_in_place = 0
            return
        self._turns_in_place += 1
        if self._turns_in_place > MOST_TURNS_IN_PLACE:
            who = "a replica" if source is Source.REPLICA else "the gate"
            raise StuckError(f"{who} asked for {at:g} s {MOST_TURNS_IN_PLACE:,} times in a row")

    def _arrive(self) -> None:
        """Let the next request of the trace arrive; with the last one the offered time is over."""
        traced = self._next_traced
        if traced is None:
            return
        self._next_traced = next(self._trace, None)
        visit = self._door.visit(traced, self._now)
        self._tally.arrive(visit)
        self._come(visit)
        if self._next_traced is None:
            self._ends_by = self._now + self._plan.drain_seconds
            if self._now > 0:
                self._close_window()

    def _come(self, visit: Visit) -> None:
        attempt = self._service.begin_try(visit, self._now)
        self._front.take(attempt, self._now, self._replicas.tokens_by(self._now))

    def _close_window(self) -> None:
        """End the offered time: what running sequences have produced by now counts, what they will does not."""
        self._advance_all()
        for replica in self._replicas:
            for key, attempt in replica.owners.items():
                self._tally.produce(attempt, replica.model.output_tokens(key))
        self._tally.close_window()
        self._window_seconds = self._now
        self._uses = tuple(replica.use(self._kv_tokens) for replica in self._replicas)
        self._gateway_busy_share = self._front.busy_share(self._now, self._replicas.tokens_by(self._now))

    def _advance_all(self) -> None:
        for replica in self._replicas:
            self._service.hear(self._replicas.advance(replica.name, self._now), self._now)

    def _look_until(self, at: float) -> None:
        """Look at every instant that is due before the next thing happens; an idle world is looked at once."""
        step = self._plan.look_seconds
        while self._look_at <= at:
            self._now = self._look_at
            self._look()
            idle_steps = 0 if self._service.visits() else floor((at - self._look_at) / step)
            self._look_at += step * max(idle_steps, 1)

    def _look(self) -> None:
        """Compare the ledger with the engines, ask all for broken invariants, and keep a point of the timeline."""
        self._advance_all()
        self._belief.look(self._replicas)
        self._belief.note_broken(self._service.check() + self._tally.check(self._on_their_way()))
        models = [replica.model for replica in self._replicas]
        self._timeline.add(
            TimePoint(
                at_seconds=self._now,
                arrived=self._tally.arrived,
                refused=self._tally.refused,
                good=self._tally.good,
                waiting=self._service.waiting,
                queued=sum(model.queue_size for model in models),
                running=sum(model.batch_size for model in models),
                kv_held_share=sum(model.held_kv_tokens for model in models) / (len(models) * self._kv_tokens),
            )
        )
        if self._progress is not None:
            self._progress(self._now)

    def _on_their_way(self) -> int:
        return sum(visit.feasible for visit in self._service.visits())

    def _report(self) -> RunReport:
        if self._window_seconds is None:  # an empty trace, or one without duration: rates refer to the whole run
            self._close_window()
        left = self._service.visits()
        for visit in left:
            self._tally.leave_unfinished(visit, self._now)
        self._belief.note_broken(self._tally.check(0))
        seconds = self._window_seconds or 1.0
        figures = self._tally.figures(seconds, self._now)
        return RunReport(
            offered_seconds=seconds,
            ended_at_seconds=self._now,
            drained=not left,
            requests=self._tally.arrived,
            imputed_share=self._tally.imputed / self._tally.arrived if self._tally.arrived else 0.0,
            quartile_edges=self._plan.quartile_edges,
            turns=self._turns,
            total=figures.total,
            lanes=figures.lanes,
            classes=figures.classes,
            quartiles=figures.quartiles,
            cells=figures.cells,
            fairness=figures.fairness,
            gateway_busy_share=self._gateway_busy_share,
            replicas=self._uses,
            ledger=self._belief.truth(),
            timeline=self._timeline.points(),
            ladders=self._rungs.use(seconds, self._now),
        )
