"""What each tenant holds, and whether its own quota leaves room."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from llmshed.admission.budget import Reservation
from llmshed.admission.policy import TenantPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.release import Release, releases_by_charge, wait_seconds
from llmshed.admission.replica import Replica
from llmshed.admission.verdict import Decision, Verdict

UNKNOWN_QUOTA_RETRY_SECONDS = 1.0
"""Wait told when a quota is full and no release can be foreseen."""


@dataclass(slots=True)
class TenantUse:
    """Requests and tokens that run or wait now, by tenant; releasing ones count until they are freed."""

    requests: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)

    def charge(self, tenant: str, reservation: Reservation) -> None:
        """Add one request."""
        self.requests[tenant] += 1
        self.tokens[tenant] += reservation.total_tokens

    def free(self, tenant: str, reservation: Reservation) -> None:
        """Take one request off again; a tenant that holds nothing is forgotten."""
        self.requests[tenant] -= 1
        self.tokens[tenant] -= reservation.total_tokens
        if self.requests[tenant] == 0:
            del self.requests[tenant], self.tokens[tenant]


def seats_refusal(tenant: TenantPolicy, use: TenantUse, replicas: Iterable[Replica], now: float) -> Verdict | None:
    """Return the refusal of a tenant that already runs as many requests as it may, or None."""
    most = tenant.max_concurrent_requests
    if most is None or use.requests[tenant.name] < most:
        return None
    return _refusal(tenant, replicas, now, 0, 1, f"{use.requests[tenant.name]:,} of {most:,} requests run or wait")


def quota_refusal(
    tenant: TenantPolicy, use: TenantUse, reservation: Reservation, replicas: Iterable[Replica], now: float
) -> Verdict | None:
    """Return the refusal that the tenant's own quota asks for, or None.

    A reservation above the whole quota is permanent: it is a `lane_limit`, since no waiting would let it in.
    """
    most = tenant.max_reserved_tokens
    if most is not None and reservation.total_tokens > most:
        detail = f"{reservation.total_tokens:,} tokens exceed this key's whole quota of {most:,}"
        return Verdict(Decision.REFUSE, Reason.LANE_LIMIT, reservation=reservation, detail=detail)
    seats = seats_refusal(tenant, use, replicas, now)
    if seats is not None or most is None:
        return seats
    over = use.tokens[tenant.name] + reservation.total_tokens - most
    if over <= 0:
        return None
    detail = (
        f"{use.tokens[tenant.name]:,} of {most:,} tokens are reserved, {reservation.total_tokens:,} more do not fit"
    )
    return _refusal(tenant, replicas, now, over, 0, detail)


def _refusal(
    tenant: TenantPolicy, replicas: Iterable[Replica], now: float, tokens: int, requests: int, detail: str
) -> Verdict:
    wait = wait_seconds(_releases_of(tenant.name, replicas, now), tokens, requests, now)
    return Verdict(
        Decision.REFUSE,
        Reason.TENANT_QUOTA,
        retry_after_seconds=UNKNOWN_QUOTA_RETRY_SECONDS if wait is None else wait,
        detail=f"this key's quota is in use: {detail}",
    )


def _releases_of(tenant: str, replicas: Iterable[Replica], now: float) -> list[Release]:
    """Return the expected releases of one tenant, behind whatever others have in its replicas' prefill.

    Each counts as one request, whatever its sequences.
    """
    return sorted(
        Release(release.at, release.tokens, 1)
        for replica in replicas
        for charge, release in releases_by_charge(replica.ledger, replica.budget, now)
        if charge.tenant == tenant
    )
