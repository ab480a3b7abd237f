"""One request that waits: what it is, whom it is charged to, and the instants that end or change its wait."""

from dataclasses import dataclass

from llmshed.admission.budget import Reservation
from llmshed.admission.lanes import Classification
from llmshed.admission.policy import AdmissionPolicy, LanePolicy
from llmshed.admission.request import PriorityClass, Request, service_rank
from llmshed.admission.verdict import Verdict

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

    @property
    def key(self) -> int:
        """Return the gateway's own identity of the request."""
        return self.request.key

    @property
    def tenant(self) -> str:
        """Return the tenant whose share of service it uses."""
        return self.request.tenant

    @property
    def priority_class(self) -> PriorityClass:
        """Return the class in force, which may be lower than the one asked for."""
        return self.chosen.priority_class

    @property
    def rank(self) -> int:
        """Return the place of its lane and class in the order of service, 0 first."""
        return service_rank(self.chosen.lane, self.chosen.priority_class)

    @property
    def continuing(self) -> bool:
        """Say whether it goes on with a conversation that this gateway served."""
        return self.request.continuing

    @property
    def total_tokens(self) -> int:
        """Return its reservation R in tokens."""
        return self.reservation.total_tokens

    @property
    def input_tokens(self) -> int:
        """Return the prompt tokens of all its sequences."""
        return self.reservation.input_tokens

    @property
    def sequences(self) -> int:
        """Return the seats that it will take."""
        return self.reservation.sequences

    @property
    def ages_at(self) -> float:
        """Return the clock reading from which it stands level with continuing conversations."""
        return self.joined_at + AGES_AT_RATIO * self.lane_policy.max_residence_seconds

    @property
    def arrival(self) -> tuple[float, int]:
        """Return its place in first come, first served; keys are given in the order of arrival."""
        return self.joined_at, self.request.key
