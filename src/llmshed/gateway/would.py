"""What would have become of a request that is let through whatever the core decides."""

from dataclasses import dataclass

from llmshed.admission.reasons import Reason
from llmshed.admission.verdict import Decision


@dataclass(slots=True)
class Would:
    """The core's decision on a request that did not wait for it.

    Args:
        decision: what the core decided at its arrival.
        reason: why it would not have been served, at its arrival or later; None while it would have been.
    """

    decision: Decision
    reason: Reason | None = None

    @property
    def word(self) -> str:
        """Return what `x-llmshed-would` tells at this moment: `admit`, `queue`, or the reason."""
        return self.decision if self.reason is None else self.reason
