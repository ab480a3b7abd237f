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
    ReplicaRemoved,
    ReplicaUp,
    Tick,
)
from llmshed.admission.service.roster import Roster


def insist_known(event: Event, live: Container[int], roster: Roster) -> None:
    """Raise unless the event is about a request of `live`, one that waits, or a replica that came up.

    Raises:
        KeyError: the event names a request that is neither live nor waiting, or a replica that never came up.
        ValueError: a request arrives under a key that is in use, if only by an engine that may still hold it.
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
        case ReplicaDown(name) | ReplicaRemoved(name) | BudgetChanged(name):
            if name not in roster.replicas:
                raise KeyError(name)
        case ReplicaUp() | PolicyChanged() | Draining() | Tick():
            pass
        case _:
            assert_never(event)
