"""The one place where lanes, budgets, ledgers and routing meet."""

from llmshed.admission.actions import Action
from llmshed.admission.events import Event
from llmshed.admission.policy import AdmissionPolicy
from llmshed.admission.request import Request
from llmshed.admission.state import ControllerState
from llmshed.admission.verdict import Verdict


class AdmissionController:
    """Decides for all pools of one gateway."""

    def __init__(self, policy: AdmissionPolicy) -> None:
        """Start with no replicas: they come up by events."""
        self._policy = policy

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take one fact and return what is to be done about it."""
        raise NotImplementedError

    def next_wakeup(self) -> float | None:
        """Return the clock reading at which the core wants a `Tick`; None while nothing is timed."""
        raise NotImplementedError

    def gate(self, tenant: str, now: float) -> Verdict | None:
        """Return the refusal that needs no body to be read (draining, no replica at all, quota), or None."""
        raise NotImplementedError

    def assess(self, request: Request, now: float) -> Verdict:
        """Return the verdict that the request would get now, changing nothing."""
        raise NotImplementedError

    def state(self) -> ControllerState:
        """Return a snapshot of every ledger."""
        raise NotImplementedError

    def check(self) -> tuple[str, ...]:
        """Return the invariants that do not hold, as sentences; empty when all do."""
        raise NotImplementedError
