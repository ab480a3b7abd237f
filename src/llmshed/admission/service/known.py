"""Whether an event is about what the core knows, asked before anything is done.

An event that raises half way would lose the answers of those whose waits fell due with it: they would wait for ever.
"""

from collections.abc import Container
from typing import assert_never

from llmshed.admission.events import (
    Arrived,
    BudgetChanged,
    Cancelled,
    Draining,
    Event,
    Failed,
    Finished,
    FirstToken,
    NotSent,
    PolicyChanged,
    ReplicaDown,
    ReplicaRead,
    ReplicaRemoved,
    ReplicaUp,
    RungHeld,
    RungReleased,
    Tick,
)
from llmshed.admission.service.laddering import Laddering
from llmshed.admission.service.ladders import Ladders
from llmshed.admission.service.roster import Roster


def insist_known(event: Event, live: Container[int], roster: Roster, ladders: Ladders) -> None:  # noqa: C901 - one flat case an event
    """Raise unless the event is about a request of `live`, one that waits, a replica that came up, or a known rung.

    Raises:
        KeyError: the event names a request that is neither live nor waiting, a replica that never came up, or a pool
            without a ladder.
        ValueError: a request arrives under a key that is in use, if only by an engine that may still hold it, or a
            rung is held that the pool's ladder does not have.
    """
    match event:
        case Arrived(request):
            if roster.holds(request.key):
                raise ValueError(f"request {request.key} is already live")
        case FirstToken(key) | Finished(key) | Failed(key) | NotSent(key):
            if key not in live:
                raise KeyError(key)
        case Cancelled(key):
            if key not in live and roster.where_waits(key) is None:
                raise KeyError(key)
        case ReplicaDown(name) | ReplicaRemoved(name) | BudgetChanged(name) | ReplicaRead(name):
            if name not in roster.replicas:
                raise KeyError(name)
        case RungHeld(pool, hold):
            _insist_rung(ladders.of(pool), pool, hold.rung)
        case RungReleased() | ReplicaUp() | PolicyChanged() | Draining() | Tick():
            pass
        case _:
            assert_never(event)


def _insist_rung(ladder: Laddering | None, pool: str, rung: str) -> None:
    if ladder is None:
        raise KeyError(pool)
    if not ladder.has_rung(rung):
        raise ValueError(f"ladder {ladder.label} has no rung `{rung}`")
