"""What a verdict charges: reservation, place in the order of service, and the charge on a replica."""

from llmshed.admission.budget import Reservation
from llmshed.admission.ledger import Charge
from llmshed.admission.request import Request, service_rank
from llmshed.admission.verdict import Verdict


def reservation_of(verdict: Verdict) -> Reservation:
    """Return what a verdict reserves; one that looked at no replica is a ValueError."""
    if verdict.reservation is None:
        raise ValueError("a verdict that charges names its reservation")
    return verdict.reservation


def rank_of(verdict: Verdict) -> int:
    """Return the service rank of a verdict; one that was not classified is a ValueError."""
    if verdict.lane is None or verdict.priority_class is None:
        raise ValueError("a verdict that charges names lane and class")
    return service_rank(verdict.lane, verdict.priority_class)


def charge_of(request: Request, verdict: Verdict, now: float) -> Charge:
    """Return what a request holds on the replica that it is dispatched to now."""
    if verdict.lane is None:
        raise ValueError("a verdict that charges names its lane")
    return Charge(
        key=request.key,
        tenant=request.tenant,
        lane=verdict.lane,
        reservation=reservation_of(verdict),
        output_ceiling_tokens=verdict.output_ceiling_tokens or 0,
        dispatched_at=now,
        streamed=request.streamed,
    )
