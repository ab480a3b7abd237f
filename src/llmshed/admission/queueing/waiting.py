"""One request that waits: what it is, whom it is charged to, and the instants that end or change its wait."""

from dataclasses import dataclass, field

from llmshed.admission.budget import Reservation
from llmshed.admission.lanes import Classification
from llmshed.admission.options import Cap
from llmshed.admission.policy import AdmissionPolicy, LanePolicy
from llmshed.admission.request import PriorityClass, Request, service_rank
from llmshed.admission.verdict import Verdict
from llmshed.ladder.model import RungAction

AGES_AT_RATIO = 0.5
"""Part of its lane's residence after which a new conversation no longer stands behind continuing ones."""


@dataclass(slots=True, eq=False)
class Waiting:
    """One queued request; while it waits only `replica` may change, since sums and places rest on the rest.

    Args:
        request: the request.
        chosen: where it was classified into.
        policy: the policy that it was admitted under.
        lane_policy: its lane's part of that policy.
        verdict: the verdict that queued it.
        reservation: what it will take on its preferred replica.
        replica: the preferred replica, which is charged with it.
        joined_at: clock reading at which it joined; its place among its tenant's goes by this.
        expires_at: clock reading at which its residence, or its own last useful instant if that is earlier, is over.
        weight: its tenant's weight, > 0.

    Attributes:
        key, tenant, continuing: those of the request.
        priority_class: the class in force, which may be lower than the one asked for.
        rank: the place of its lane and class in the order of service, 0 first.
        total_tokens, input_tokens, sequences: those of the reservation.
        least_tokens: what it takes at least, whatever replica serves it: ceilings that nobody asked for may differ.
        ages_at: clock reading from which it stands level with continuing conversations.
        cap: the ceiling that a rung granted as it came, which holds whatever rung is in force later; None for its own.
        arrival: its place in first come, first served; keys are given in the order of arrival.
    """

    request: Request
    chosen: Classification
    policy: AdmissionPolicy
    lane_policy: LanePolicy
    verdict: Verdict
    reservation: Reservation
    replica: str
    joined_at: float
    expires_at: float
    weight: float
    key: int = field(init=False)
    tenant: str = field(init=False)
    priority_class: PriorityClass = field(init=False)
    continuing: bool = field(init=False)
    total_tokens: int = field(init=False)
    input_tokens: int = field(init=False)
    sequences: int = field(init=False)
    arrival: tuple[float, int] = field(init=False)
    rank: int = field(init=False)
    least_tokens: int = field(init=False)
    ages_at: float = field(init=False)
    cap: Cap | None = field(init=False)

    def __post_init__(self) -> None:
        """Derive once what sums and orders read all the time."""
        self.key = self.request.key
        self.tenant = self.request.tenant
        self.priority_class = self.chosen.priority_class
        self.continuing = self.request.continuing
        self.total_tokens = self.reservation.total_tokens
        self.input_tokens = self.reservation.input_tokens
        self.sequences = self.reservation.sequences
        self.arrival = (self.joined_at, self.key)
        self.rank = service_rank(self.chosen.lane, self.chosen.priority_class)
        self.cap = None
        least_output_tokens = self.request.asked_output_tokens or 1
        ceiling_tokens, degradations = self.verdict.output_ceiling_tokens, self.verdict.degradations
        if RungAction.CAP_OUTPUT in degradations and ceiling_tokens is not None:
            self.cap = Cap(ceiling_tokens, degradations)
            least_output_tokens = min(least_output_tokens, ceiling_tokens)
        self.least_tokens = self.input_tokens + self.sequences * least_output_tokens
        self.ages_at = self.joined_at + AGES_AT_RATIO * self.lane_policy.max_residence_seconds
