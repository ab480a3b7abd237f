"""Drives a calibration on a simulated replica in virtual time: the machine that runs against real ones, unchanged."""

from collections import deque
from dataclasses import dataclass

from virtual_replica import VirtualReplica

from llmshed.calibration import Calibration
from llmshed.calibration.events import Answered, Begun, Cancel, Event, FirstToken, Read, ReadMetrics, Send, Stop, Woken
from llmshed.workload.asks import Sample


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended, after how much virtual time, and how many asks it sent."""

    stop: Stop
    seconds: float
    requests: int


class VirtualRun:
    """One calibration and one replica on one virtual clock."""

    def __init__(self, machine: Calibration, replica: VirtualReplica) -> None:
        """Stand at the beginning."""
        self.machine = machine
        self._replica = replica
        self._now = 0.0
        self._requests = 0
        self._stop: Stop | None = None
        self._events: deque[Event] = deque()

    def run(self) -> Ran:
        """Go on until the machine stops; a machine with nothing to wait for is an error."""
        self._events.append(Begun(self._replica.read(0.0)))
        while self._stop is None:
            while self._events and self._stop is None:
                self._tell(self._events.popleft())
            if self._stop is None:
                self._step()
        return Ran(self._stop, self._now, self._requests)

    def _step(self) -> None:
        """Go to what happens next: a change of the replica, or the machine's wake-up."""
        times = [at for at in (self._replica.model.next_change_at, self.machine.next_wakeup()) if at is not None]
        if not times:
            raise RuntimeError(f"nothing will ever happen after {self._now:g} s")
        self._now = max(min(times), self._now)
        told = self._replica.advance(self._now)
        self._events.extend(Answered(one) if isinstance(one, Sample) else FirstToken(one) for one in told)
        if not told:
            self._events.append(Woken())

    def _tell(self, event: Event) -> None:
        for action in self.machine.handle(event, self._now):
            match action:
                case Send(ask):
                    self._requests += 1
                    self._hear(self._replica.send(ask, self._now))
                case Cancel(ask_id):
                    self._hear(self._replica.cancel(ask_id, self._now))
                case ReadMetrics():
                    self._events.append(Read(self._replica.read(self._now)))
                case Stop():
                    self._stop = action

    def _hear(self, sample: Sample | None) -> None:
        if sample is not None:
            self._events.append(Answered(sample))
