"""The figures of a run while it runs: what happened to whom, in memory that does not grow with the trace."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from llmshed.admission.request import Lane, PriorityClass
from llmshed.whatif.fairness import TenantTally
from llmshed.whatif.gaps import Gap
from llmshed.whatif.report import Cell, Fairness, Slice
from llmshed.whatif.slices import SliceTally, merged
from llmshed.whatif.visits import Try, Visit

QUARTILES = (1, 2, 3, 4)

Place = tuple[Lane, PriorityClass, int]


class Figures(NamedTuple):
    """The request figures of a finished run, as `RunReport` holds them."""

    total: Slice
    lanes: dict[str, Slice]
    classes: dict[str, Slice]
    quartiles: tuple[Slice, ...]
    cells: tuple[Cell, ...]
    fairness: Fairness


class Tally:
    """Counts every visit once, under its first standing.

    Invariant, stated by `check`: arrived = infeasible + finished + failed + given up + unfinished + those on their way.
    """

    def __init__(self, most_tenants: int) -> None:
        """Start with nothing, and the window open."""
        self._cells: dict[Place, SliceTally] = {}
        self._gaps: dict[str, Gap] = {}
        self._tenants = TenantTally(most_tenants)
        self._window_open = True
        self.arrived = 0
        self.imputed = 0
        self.refused = 0
        self.good = 0

    def arrive(self, visit: Visit) -> None:
        """Count a visit that comes for the first time."""
        cell = self._cell(visit)
        self.arrived += 1
        self.imputed += visit.traced.imputed
        cell.arrived += 1
        if visit.feasible:
            cell.offered_tokens += visit.wanted_tokens
            self._tenants.offer(visit.traced.tenant, visit.wanted_tokens)
        else:
            cell.infeasible += 1

    def begin_try(self, attempt: Try, now: float) -> None:
        """Count a try that stands at the door."""
        visit = attempt.visit
        self._cell(visit).retries += visit.tries > 1
        for gap in self._gaps_of(visit):
            gap.begin_wait(now)

    def dispatch(self, attempt: Try, now: float) -> None:
        """Count a try that the gate let go."""
        if attempt.visit.feasible:
            self._cell(attempt.visit).gate_wait.add(now - attempt.arrived_at)

    def first_token(self, attempt: Try, now: float) -> None:
        """Count the first token of a try."""
        visit = attempt.visit
        for gap in self._gaps_of(visit):
            gap.start(now)
        cell = self._cell(visit)
        if self._window_open:
            cell.window_input_tokens += visit.input_tokens
        if visit.feasible and not visit.served:
            cell.served += 1
            cell.note_wait(now - visit.first_arrived_at)
        visit.served = True

    def refuse(self, attempt: Try, reason: str, now: float) -> None:
        """Count a try that was not served; what becomes of its visit is told apart."""
        self.refused += 1
        self._cell(attempt.visit).refusals[reason] += 1
        if attempt.first_token_at is None:
            for gap in self._gaps_of(attempt.visit):
                gap.end_wait(now)

    def give_up(self, visit: Visit, *, failed: bool) -> None:
        """Count a visit that is not tried again; `failed` says that an engine failed or refused it, not the gate."""
        if not visit.feasible:
            return
        if failed:
            self._cell(visit).failed += 1
        else:
            self._cell(visit).given_up += 1

    def finish(self, attempt: Try) -> None:
        """Count a visit whose answer came to its end."""
        visit, cell = attempt.visit, self._cell(attempt.visit)
        if self._window_open:
            cell.window_finished += 1
        if not visit.feasible:
            return
        tokens = visit.input_tokens + attempt.output_tokens
        cell.finished += 1
        self._tenants.serve(visit.traced.tenant, tokens)
        if attempt.seen_at is not None:
            cell.ttft.add(attempt.seen_at - visit.first_arrived_at)
            cell.try_ttft.add(attempt.seen_at - attempt.arrived_at)
        if attempt.slowest_tpot_seconds is not None:
            cell.tpot.add(attempt.slowest_tpot_seconds)
        if attempt.met_objectives:
            self.good += 1
            cell.good += 1
            cell.good_tokens += tokens
            cell.good_output_tokens += attempt.output_tokens

    def produce(self, attempt: Try, output_tokens: int) -> None:
        """Count output of a sequence, all of it at its end or what it has when the window closes."""
        if self._window_open:
            self._cell(attempt.visit).window_output_tokens += output_tokens

    def close_window(self) -> None:
        """End what counts inside the offered time."""
        self._window_open = False

    def leave_unfinished(self, visit: Visit, now: float) -> None:
        """Count a visit that has no end when the run ends."""
        if not visit.feasible:
            return
        cell = self._cell(visit)
        cell.unfinished += 1
        if not visit.served:
            cell.note_wait(now - visit.first_arrived_at)

    def check(self, on_their_way: int) -> tuple[str, ...]:
        """Return the broken invariant as a sentence; `on_their_way` are the feasible visits without an ending."""
        ended = sum(cell.ended for cell in self._cells.values())
        if self.arrived == ended + on_their_way:
            return ()
        return (f"{self.arrived} requests arrived, {ended} had their end and {on_their_way} are on their way",)

    def figures(self, seconds: float, now: float) -> Figures:
        """Return the figures of a run that ended at `now`, with rates over `seconds`."""

        def of(name: str, some: Iterable[SliceTally]) -> Slice:
            gap = self._gaps.get(name)
            return merged(some).slice(seconds, 0.0 if gap is None else gap.longest_seconds(now))

        places = sorted(self._cells, key=_in_order)
        lanes = [lane for lane in Lane if any(place[0] is lane for place in places)]
        classes = sorted({place[1] for place in places}, key=lambda priority_class: priority_class.rank)
        return Figures(
            total=of("", self._cells.values()),
            lanes={lane.value: of(lane, self._where(0, lane)) for lane in lanes},
            classes={one.value: of(one, self._where(1, one)) for one in classes},
            quartiles=tuple(of(str(quartile), self._where(2, quartile)) for quartile in QUARTILES),
            cells=tuple(
                Cell(lane.value, one.value, quartile, self._cells[lane, one, quartile].slice(seconds, None))
                for lane, one, quartile in places
            ),
            fairness=self._tenants.fairness(),
        )

    def _cell(self, visit: Visit) -> SliceTally:
        place = (visit.standing.lane, visit.standing.priority_class, visit.quartile)
        cell = self._cells.get(place)
        if cell is None:
            cell = self._cells[place] = SliceTally()
        return cell

    def _where(self, axis: int, value: Lane | PriorityClass | int) -> Iterator[SliceTally]:
        return (cell for place, cell in self._cells.items() if place[axis] == value)

    def _gaps_of(self, visit: Visit) -> Iterator[Gap]:
        """Yield the gaps of the whole and of a feasible visit's lane, class and quartile; their names never meet."""
        if not visit.feasible:
            return
        for name in ("", visit.standing.lane.value, visit.standing.priority_class.value, str(visit.quartile)):
            gap = self._gaps.get(name)
            if gap is None:
                gap = self._gaps[name] = Gap()
            yield gap


def _in_order(place: Place) -> tuple[int, int, int]:
    return list(Lane).index(place[0]), place[1].rank, place[2]
