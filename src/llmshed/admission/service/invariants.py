"""What must hold between ledgers, queues, tenants and the requests that the controller knows as live."""

from collections.abc import Iterator, Mapping

from llmshed.admission.service.roster import Roster
from llmshed.admission.tenancy import TenantUse


def broken_between(roster: Roster, sent_to: Mapping[int, str], tenant_use: TenantUse) -> Iterator[str]:
    """Yield the invariants that do not hold, as sentences; none when all do.

    Args:
        roster: the pools and the replicas, each of which is asked for its own invariants too.
        sent_to: replica that each live request was sent to, by key.
        tenant_use: what each tenant is said to hold.
    """
    replicas, pools = roster.replicas, roster.pools
    for name, replica in replicas.items():
        yield from (f"{name}: {text}" for text in replica.ledger.check())
    for name, pool in pools.items():
        yield from (f"{name}: {text}" for text in pool.check())
    for key, sent in sent_to.items():
        holders = [name for name, replica in replicas.items() if key in replica.ledger]
        if holders != [sent]:
            yield f"request {key} was sent to {sent} and is charged on {holders}"
        if roster.where_waits(key) is not None:
            yield f"request {key} was sent to {sent} and waits too"
    charges = [(name, charge) for name, replica in replicas.items() for charge in replica.ledger]
    for name, charge in charges:
        if charge.key not in sent_to and charge.release_at is None:
            yield f"{name}: request {charge.key} is charged but neither live nor releasing"
    queues = [queue for pool in pools.values() for queue in pool.queues.values()]
    lent = sum(replica.ledger.active_tokens for replica in replicas.values()) + sum(queue.tokens for queue in queues)
    if sum(tenant_use.tokens.values()) != lent:
        yield "what tenants hold differs from what replicas lent and queues keep"
    if sum(tenant_use.requests.values()) != len(charges) + sum(map(len, queues)):
        yield "requests counted by tenant differ from charges and queues"
