"""Smallest reservation first: a bounded line in front of a token ledger."""

from collections.abc import Callable, Iterable, Sequence

from llmshed.admission.reasons import Reason
from llmshed.admission.replica import Replica
from llmshed.whatif.gates.line import Rank
from llmshed.whatif.gates.rule import Rule, TurnAway, least_outstanding
from llmshed.whatif.gates.work import Work

QUEUE_REQUESTS = 512
"""Most that wait by default: more than any burst that could still be served within its objective."""


class SmallestFirst(Rule):
    """Work waits until its reservation fits the ledger, the smallest reservation served first.

    It shows what is to be had by taking small work only, so the served mix must be read beside its goodput. The
    budgets, the seats and the reservations are llmshed's own. A full line turns its largest away. Work that waited for
    as long as its TTFT objective is evicted.

    Args:
        objective_seconds: returns the TTFT objective of work, which follows from its input.
        most_waiting: size of each line.
    """

    def __init__(self, objective_seconds: Callable[[Work], float], most_waiting: int = QUEUE_REQUESTS) -> None:
        """Refuse a line without a place."""
        if most_waiting < 1:
            raise ValueError(f"a line of {most_waiting} serves nothing by size; accepted are 1 and more")
        self._objective_seconds = objective_seconds
        self.most_waiting = most_waiting

    def place(self, work: Work, candidates: Sequence[Replica], behind: Iterable[Work], now: float) -> Replica | None:  # noqa: ARG002 - rules look at what they need
        """Return the least used replica that the reservation fits."""
        fitting = [r for r in candidates if r.equation().fits(work.terms(r).reservation)]
        return least_outstanding(fitting) if fitting else None

    def turn_away(self, work: Work, candidates: Sequence[Replica], now: float) -> TurnAway | None:  # noqa: ARG002 - rules look at what they need
        """Refuse what exceeds the whole budget of every replica, since it could wait for ever in front of all."""
        if any(replica.holds_ever(work.terms(replica).reservation) for replica in candidates):
            return None
        return TurnAway(Reason.LANE_LIMIT, "the reservation exceeds what any replica that is up may ever lend")

    def rank(self, work: Work) -> Rank:
        """Return the reservation in tokens, then the order of arrival."""
        return (reserved_tokens(work), work.order)

    def waits_until(self, work: Work) -> float:
        """Return when the TTFT objective has passed."""
        return work.request.arrived_at + self._objective_seconds(work)

    def late(self, work: Work) -> TurnAway:
        """Return that the objective has passed."""
        seconds = self._objective_seconds(work)
        return TurnAway(Reason.DEADLINE_INFEASIBLE, f"waited for its whole TTFT objective of {seconds:.3f} s")

    def displaced(self, work: Work) -> TurnAway:
        """Return that smaller work fills the line."""
        detail = f"{self.most_waiting} requests wait that are smaller than {reserved_tokens(work):,} tokens"
        return TurnAway(Reason.TOKEN_BUDGET_EXHAUSTED, detail)


def reserved_tokens(work: Work) -> int:
    """Return input and output ceiling of all sequences, wherever they run."""
    asked = work.request.asked_output_tokens
    ceiling = work.lane_policy.default_output_tokens if asked is None else asked
    return work.request.input_tokens + work.request.sequences * ceiling
