"""What a calibration is told, and what it wants done. Each `handle` returns actions in the order to perform them."""

from dataclasses import dataclass
from enum import StrEnum

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.workload.asks import Ask, Sample


class StopReason(StrEnum):
    """Why a calibration sends nothing more."""

    DONE = "done"
    """All sweeps ended, and the mix was confirmed."""
    TIME = "time"
    """The time that it was given is over; what was measured by then stands."""
    NOTHING_HOLDS = "nothing_holds"
    """Not even the lowest level keeps the objectives."""
    REFUSES = "refuses"
    """The engine refuses everything."""
    FAILS = "fails"
    """Requests fail one after the other: the replica is gone, or not what it was taken for."""
    SILENT = "silent"
    """Requests run and nothing comes back."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The replica is idle and the run may begin; the reading is None where the engine tells nothing."""

    reading: ReplicaReading | None


@dataclass(frozen=True, slots=True)
class FirstToken:
    """The first token of an ask arrived."""

    ask_id: str


@dataclass(frozen=True, slots=True)
class Answered:
    """An ask ended, in whatever way; of each that was sent there is one, also of those that were cancelled."""

    sample: Sample


@dataclass(frozen=True, slots=True)
class Read:
    """What `ReadMetrics` asked for."""

    reading: ReplicaReading


@dataclass(frozen=True, slots=True)
class Woken:
    """The time that `next_wakeup` named has come."""


Event = Begun | FirstToken | Answered | Read | Woken


@dataclass(frozen=True, slots=True)
class Send:
    """Send an ask now; the instant of the `handle` that returned it is when it was due."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class Cancel:
    """Close the connection of an ask that is in flight; it is answered as cancelled."""

    ask_id: str


@dataclass(frozen=True, slots=True)
class ReadMetrics:
    """Read the engine's metrics, and tell them as `Read`; where that fails nothing needs to be told."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing more will be sent.

    Args:
        reason: why.
        detail: one sentence for people.
    """

    reason: StopReason
    detail: str


Action = Send | Cancel | ReadMetrics | Stop
