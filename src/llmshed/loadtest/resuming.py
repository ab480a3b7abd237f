"""Brings a machine back to where an earlier one stood, by what that one was told."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from llmshed.calibration.events import Answered, Send
from llmshed.clock import SystemClock
from llmshed.loadtest.driver import Machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from llmshed.loadtest.journal import Entry
    from llmshed.workload.asks import Ask, Sample


class Position(Protocol):
    """Where a machine stands."""

    @property
    def phase(self) -> str:
        """Return the name of what it does."""

    @property
    def level(self) -> float:
        """Return what it holds in flight."""


class Resumable(Machine, Protocol):
    """A machine that is a function of its events and their instants, and works in phases."""

    def progress(self) -> Position:
        """Return where it stands."""


M_co = TypeVar("M_co", bound=Resumable, covariant=True)


@dataclass(frozen=True, slots=True)
class Standing(Generic[M_co]):
    """A machine and what it waits for.

    Args:
        machine: where the run stands.
        began_at: when it began, on its own clock; None when it has not.
        ended_at: instant of the last event that brought it there.
        keep_bytes: how much of the journal led there.
        rows: samples so far, each with the phase and the level that it came in.
        open_asks: what the machine believes to be in flight.
    """

    machine: M_co
    began_at: float | None = None
    ended_at: float = 0.0
    keep_bytes: int = 0
    rows: "Sequence[tuple[Sample, str, float]]" = ()
    open_asks: "tuple[Ask, ...]" = ()


def brought_back(
    new: "Callable[[], M_co]", entries: "Sequence[Entry]", finished: "Callable[[M_co], bool]"
) -> Standing[M_co]:
    """Bring a new machine to the beginning of the phase in which the old one ended.

    A phase that was not ended begins anew: the replica is empty now, and figures of a level that is being filled
    again would be those of the filling. One in which the run failed begins anew too; one that has `finished` stays so.
    """
    scratch = new()
    phase, cuts = None, [0]
    for place, entry in enumerate(entries, 1):
        scratch.handle(entry.event, entry.now)
        if (now_in := scratch.progress().phase) != phase:
            phase = now_in
            cuts.append(place)
    if entries and scratch.next_wakeup() is None and not finished(scratch):
        cuts.pop()
    cut = cuts[-1]
    machine = new()
    if not cut:
        return Standing(machine)
    flying: dict[str, Ask] = {}
    rows = []
    for entry in entries[:cut]:
        actions = machine.handle(entry.event, entry.now)
        if isinstance(entry.event, Answered):
            flying.pop(entry.event.sample.ask.id, None)
            told = machine.progress()
            rows.append((entry.event.sample, told.phase, told.level))
        flying |= {action.ask.id: action.ask for action in actions if isinstance(action, Send)}
    last = entries[cut - 1]
    return Standing(machine, entries[0].now, last.now, last.ends_at, rows, tuple(flying.values()))


class ShiftedClock(SystemClock):
    """The machine's clocks, whose monotonic one goes on where another ended: the time between is not seen.

    Args:
        starts_at: its first reading.
    """

    def __init__(self, starts_at: float) -> None:
        self._ahead = starts_at - super().now()

    def now(self) -> float:
        """Return seconds on the scale of the run that is gone on with."""
        return super().now() + self._ahead
