"""No limit at all, and a limit on requests in flight: what stands in front of most engines today."""

from collections.abc import Iterable, Sequence

from llmshed.admission.reasons import Reason
from llmshed.admission.replica import Replica
from llmshed.whatif.gates.rule import Rule, TurnAway, least_outstanding
from llmshed.whatif.gates.work import Work


class NoLimit(Rule):
    """Everything goes to the engine; its own limits alone refuse (TGI's permits: 429)."""

    def place(
        self,
        work: Work,  # noqa: ARG002 - rules look at what they need
        candidates: Sequence[Replica],
        behind: Iterable[Work],  # noqa: ARG002 - rules look at what they need
        now: float,  # noqa: ARG002 - rules look at what they need
    ) -> Replica:
        """Return the replica with the fewest requests outstanding."""
        return least_outstanding(candidates)


class RequestLimit(Rule):
    """So many requests in flight on each replica, whatever their size, and refused above: a reverse proxy.

    Args:
        requests: most requests in flight on a replica, at least 1; None for its hard cap, which is the number that an
            operator with a profile but without token counts would write there.
    """

    def __init__(self, requests: int | None = None) -> None:
        """Refuse a limit that would let nothing through."""
        if requests is not None and requests < 1:
            raise ValueError(f"a limit of {requests} requests lets nothing through; accepted are 1 and more")
        self._requests = requests

    def place(
        self,
        work: Work,  # noqa: ARG002 - rules look at what they need
        candidates: Sequence[Replica],
        behind: Iterable[Work],  # noqa: ARG002 - rules look at what they need
        now: float,  # noqa: ARG002 - rules look at what they need
    ) -> Replica | TurnAway:
        """Return the least used replica below its limit."""
        below = [replica for replica in candidates if len(replica.ledger) < self._limit(replica)]
        if below:
            return least_outstanding(below)
        told = "; ".join(f"{r.spec.name} has {len(r.ledger)} of {self._limit(r)}" for r in candidates)
        return TurnAway(Reason.CONCURRENCY_LIMIT, f"requests in flight: {told}")

    def _limit(self, replica: Replica) -> int:
        return replica.budget.hard_cap_sequences if self._requests is None else self._requests
