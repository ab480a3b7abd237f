"""A pool of the core alone, without a controller: replicas with charges, and requests that wait for them."""

from typing import Any

from fakes.door import policy, queueing_lanes, request, spec
from llmshed.admission.budget import Reservation
from llmshed.admission.lanes import Classification
from llmshed.admission.ledger import Charge
from llmshed.admission.options import options_on
from llmshed.admission.policy import AdmissionPolicy, ReplicaSpec
from llmshed.admission.queueing.waiting import Waiting
from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.admission.service.choice import Place
from llmshed.admission.service.foresight import Asker
from llmshed.admission.service.pool import Pool
from llmshed.admission.service.replica import AwaitedReplica
from llmshed.admission.verdict import Decision, Verdict

POLICY = policy(lanes=queueing_lanes())
INTENTS = {Lane.INTERACTIVE: Intent.INTERACTIVE, Lane.BULK: Intent.BULK}
NORMAL = PriorityClass.NORMAL


def awaited(one: ReplicaSpec | None = None, *, shared: bool = True) -> AwaitedReplica:
    """Return an idle replica that is up at time 0."""
    return AwaitedReplica(one or spec(), shared=shared, engine_share_seconds=1.4, now=0.0)


def pool_of(*specs: ReplicaSpec, shared: bool = True) -> Pool:
    """Return a pool whose replicas are up at time 0 and idle."""
    pool = Pool("main")
    for one in specs or (spec(),):
        pool.replicas[one.name] = awaited(one, shared=shared)
    return pool


def charge(key: int, input_tokens: int, output: int, lane: Lane = Lane.INTERACTIVE, now: float = 0.0) -> Charge:
    """Return a charge of one sequence."""
    return Charge(key, "acme", lane, Reservation(input_tokens, output, 0, 1), output, now)


def running(
    pool: Pool,
    key: int,
    input_tokens: int,
    output: int,
    lane: Lane = Lane.INTERACTIVE,
    now: float = 0.0,
    priority_class: PriorityClass = NORMAL,
) -> None:
    """Charge a request to the pool's first replica."""
    verdict = Verdict(Decision.ADMIT, lane=lane, priority_class=priority_class)
    pool.take(charge(key, input_tokens, output, lane, now), next(iter(pool)), verdict, 1.0, now)


def waiter(
    pool: Pool,
    key: int,
    input_tokens: int = 400,
    output: int = 100,
    lane: Lane = Lane.INTERACTIVE,
    priority_class: PriorityClass = NORMAL,
    *,
    now: float = 0.0,
    replica: str = "r1",
    of: AdmissionPolicy = POLICY,
    **changes: Any,
) -> Waiting:
    """Return a request that begins to wait, not yet in its queue."""
    made = request(key, input_tokens, output, **changes)
    chosen = Classification(INTENTS[lane], priority_class, lane)
    (option,) = options_on((pool.replicas[replica],), made, of.lanes[lane])
    verdict = option.verdict(Decision.QUEUE, chosen, of.lanes[lane])
    until = now + of.lanes[lane].max_residence_seconds
    return Waiting(made, chosen, of, of.lanes[lane], verdict, option.reservation, replica, now, until, 1.0)


def queued(pool: Pool, key: int, *args: Any, now: float = 0.0, **changes: Any) -> Waiting:
    """Let a request wait."""
    made = waiter(pool, key, *args, now=now, **changes)
    pool.join(made, now)
    return made


def asker_of(
    input_tokens: int = 400,
    output: int = 100,
    lane: Lane = Lane.INTERACTIVE,
    priority_class: PriorityClass = NORMAL,
    *,
    of: AdmissionPolicy = POLICY,
    repeat: bool = False,
    **changes: Any,
) -> Asker:
    """Return a newcomer at the door, with the key 999."""
    return Asker(
        request(999, input_tokens, output, **changes), lane, priority_class, 1.0, of.lanes[lane], repeat=repeat
    )


def places_of(pool: Pool, asker: Asker) -> list[Place]:
    """Return a newcomer's places, one for each replica of the pool."""
    options = options_on(pool, asker.request, asker.lane_policy)
    return [Place(option, replica, pool) for option, replica in zip(options, pool, strict=True)]
