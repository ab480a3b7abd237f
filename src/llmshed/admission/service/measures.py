"""What the rungs in force on a pool do to who stands at the door: whom they hold back, and what they grant.

Nobody is held back while work of a lower rank is taken in the same pool, whatever the ladder's file says: a rung acts
on a rank of the order of service only where every lower rank that the pool serves is held back for all tenants.
"""

from collections.abc import Sequence
from typing import NamedTuple

from llmshed.admission.request import CLASSES, SERVICE_RANKS, Lane, PriorityClass, Request, service_rank
from llmshed.ladder.model import Rung, RungAction

HOLDING_BACK = {Lane.INTERACTIVE: RungAction.SHED_INTERACTIVE, Lane.BULK: RungAction.STOP_BULK}
"""The action that holds back the arrivals of a lane."""


class Numbered(NamedTuple):
    """A rung in force and its place on the ladder, 1 for the first."""

    number: int
    rung: Rung


class Measures:
    """The rungs in force on one pool, as arrivals ask for them; made anew at each step.

    Args:
        rungs: the rungs in force, first to last.
        lanes: those that the pool serves; bulk is held back only where interactive work shares its replicas.
    """

    __slots__ = ("_caps", "_held_back", "_places")

    def __init__(self, rungs: Sequence[Rung], lanes: frozenset[Lane]) -> None:
        numbered = [Numbered(number, rung) for number, rung in enumerate(rungs, 1)]
        self._held_back = _held_back(numbered, lanes)
        self._caps = [one for one in numbered if one.rung.action is RungAction.CAP_OUTPUT]
        self._places: dict[str, int] = {}
        for number, rung in numbered:
            self._places.setdefault(rung.action, number)

    def holding_back(self, rank: int, tenant: str) -> Numbered | None:
        """Return the rung that holds a request back, None where none does; of several the one that is left last."""
        for one in self._held_back[rank]:
            tenants = one.rung.scope.tenants
            if tenants is None or tenant in tenants:
                return one
        return None

    def cap(self, priority_class: PriorityClass, tenant: str) -> Numbered | None:
        """Return the rung that grants a request the least output, None where none lowers ceilings of its like."""
        lowest: Numbered | None = None
        lowest_tokens: int | None = None
        for one in self._caps:
            tokens = one.rung.max_output_tokens
            if tokens is None or not one.rung.scope.covers(priority_class, tenant):
                continue
            if lowest_tokens is None or tokens < lowest_tokens:
                lowest, lowest_tokens = one, tokens
        return lowest

    def with_cap(self, request: Request, number: int) -> tuple[str, ...]:
        """Return what is told of a request whose ceiling rung `number` lowered, in the order of the rungs.

        What was done to it before another pool's rung sent it here comes first.
        """
        done = request.degradations
        place = len(done)
        if request.moved_from is None:
            place = sum(self._places.get(action, 0) < number for action in done)
        return (*done[:place], RungAction.CAP_OUTPUT.value, *done[place:])


def _held_back(rungs: Sequence[Numbered], lanes: frozenset[Lane]) -> list[tuple[Numbered, ...]]:
    """Return the rungs that act on each rank, from the lowest up to the first that is not held back for all."""
    acting: list[tuple[Numbered, ...]] = [()] * SERVICE_RANKS
    if Lane.INTERACTIVE not in lanes:
        return acting
    for lane in (Lane.BULK, Lane.INTERACTIVE):
        if lane not in lanes:
            continue
        for priority_class in reversed(CLASSES):
            here = tuple(
                one
                for one in rungs
                if one.rung.action is HOLDING_BACK[lane] and priority_class in one.rung.scope.classes
            )
            acting[service_rank(lane, priority_class)] = here
            if all(one.rung.scope.tenants is not None for one in here):
                return acting
    return acting
