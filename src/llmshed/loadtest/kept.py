"""A machine as its driver sees it: all that it is told is kept, and prompts of others end it."""

from typing import TYPE_CHECKING

from llmshed.calibration.events import Answered, Begun, Event, Woken
from llmshed.loadtest.watchful import UndisturbedMachine
from llmshed.workload.asks import Outcome, Sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from llmshed.calibration.events import Action
    from llmshed.loadtest.journal import Journal
    from llmshed.loadtest.resuming import Resumable, Standing
    from llmshed.loadtest.watchful import WatchfulSender


class KeptMachine:
    """Writes each event to the journal before the machine is told.

    Args:
        standing: the machine, and what it waits for if it goes on.
        sender: knows what others sent.
        journal: keeps each event.
        told: is called for each sample with the phase and the level in which it came, and the instant of the beginning.
    """

    def __init__(
        self,
        standing: "Standing[Resumable]",
        sender: "WatchfulSender",
        journal: "Journal",
        told: "Callable[[Sample, str, float, float], None]",
    ) -> None:
        self._standing = standing
        self._machine = standing.machine
        self._undisturbed = UndisturbedMachine(standing.machine, sender)
        self._journal = journal
        self._told = told
        self._began_at = standing.began_at
        for sample, phase, level in standing.rows:
            told(sample, phase, level, standing.began_at or 0.0)

    def handle(self, event: Event, now: float) -> "list[Action]":
        """Keep the event and pass it on; the first one of a run that goes on ends what had been in flight.

        Raises:
            DisturbedError: somebody else uses the replica.
            OutputError: the journal cannot take it.
        """
        if self._began_at is None:
            self._began_at = now
        elif isinstance(event, Begun):
            return self._go_on(now)
        return self._pass_on(event, now)

    def next_wakeup(self) -> float | None:
        """Return when the machine wants to be woken."""
        return self._machine.next_wakeup()

    def _go_on(self, now: float) -> "list[Action]":
        actions = []
        for ask in self._standing.open_asks:
            lost = Sample(ask, now, now, (), now, Outcome.CANCELLED, None, 0, "the run was interrupted")
            actions += self._pass_on(Answered(lost), now)
        return actions or self._pass_on(Woken(), now)

    def _pass_on(self, event: Event, now: float) -> "list[Action]":
        self._journal.write(event, now)
        actions = self._undisturbed.handle(event, now)
        if isinstance(event, Answered):
            at = self._machine.progress()
            self._told(event.sample, at.phase, at.level, self._began_at or 0.0)
        return actions
