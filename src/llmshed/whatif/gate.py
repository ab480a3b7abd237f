"""What stands between clients and replicas: the controller of the daemon, or a policy that it is compared with."""

from typing import Protocol

from llmshed.admission.actions import Action
from llmshed.admission.events import Event


class Gate(Protocol):
    """Events in, actions out, as `llmshed.admission.controller.AdmissionController`, which is one.

    Every `Arrived` is answered by one `Dispatch`, `Enqueue` or `Refuse`, at once; an enqueued request later by one
    `Dispatch` or `Evict`.
    """

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take one fact and return what is to be done about it."""

    def next_wakeup(self) -> float | None:
        """Return when the gate wants a `Tick`; None while nothing is timed."""

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold."""
