"""The transition table: where a pool stands by rule, what a window showed, and what is done.

The machine looks its moves up here and the diagram of docs/ladder.md is drawn from here, so the two are one.
"""

from enum import StrEnum
from typing import NamedTuple


class Place(StrEnum):
    """Where a pool stands by rule."""

    GROUND = "ground"
    """No rung."""
    RUNG = "rung"
    """A rung with another one above it."""
    LAST = "last rung"
    """The last rung; on a ladder of one it is the only one."""


class Shown(StrEnum):
    """What a window showed, it included in the rows; above goes before calm where signals disagree."""

    ABOVE = "above the next rung's entry, fewer windows in a row than it asks for"
    LONG_ABOVE = "above the next rung's entry, as many windows in a row as it asks for"
    NEITHER = "neither above nor calm"
    CALM = "calm, fewer windows in a row than the step back takes"
    LONG_CALM = "calm, as many windows in a row as the step back takes, with room"
    CROWDED = "calm, as many windows in a row as the step back takes, no room"


class Move(StrEnum):
    """What is done; all but counting begins both rows anew."""

    COUNT_ABOVE = "count as above"
    CLIMB = "climb one rung"
    FORGET = "count anew"
    COUNT_CALM = "count as calm"
    BACK = "go back one rung"


class Row(NamedTuple):
    """One row: the move and the places that it may lead to."""

    move: Move
    leads_to: tuple[Place, ...]


TABLE = {
    (Place.GROUND, Shown.ABOVE): Row(Move.COUNT_ABOVE, (Place.GROUND,)),
    (Place.GROUND, Shown.LONG_ABOVE): Row(Move.CLIMB, (Place.RUNG, Place.LAST)),
    (Place.GROUND, Shown.NEITHER): Row(Move.FORGET, (Place.GROUND,)),
    (Place.RUNG, Shown.ABOVE): Row(Move.COUNT_ABOVE, (Place.RUNG,)),
    (Place.RUNG, Shown.LONG_ABOVE): Row(Move.CLIMB, (Place.RUNG, Place.LAST)),
    (Place.RUNG, Shown.NEITHER): Row(Move.FORGET, (Place.RUNG,)),
    (Place.RUNG, Shown.CALM): Row(Move.COUNT_CALM, (Place.RUNG,)),
    (Place.RUNG, Shown.LONG_CALM): Row(Move.BACK, (Place.GROUND, Place.RUNG)),
    (Place.RUNG, Shown.CROWDED): Row(Move.COUNT_CALM, (Place.RUNG,)),
    (Place.LAST, Shown.NEITHER): Row(Move.FORGET, (Place.LAST,)),
    (Place.LAST, Shown.CALM): Row(Move.COUNT_CALM, (Place.LAST,)),
    (Place.LAST, Shown.LONG_CALM): Row(Move.BACK, (Place.GROUND, Place.RUNG)),
    (Place.LAST, Shown.CROWDED): Row(Move.COUNT_CALM, (Place.LAST,)),
}
"""Every pair that can be: on the ground nothing is calm, since nothing can be left, and above the last rung is none."""


def place(rung: int, rungs: int) -> Place:
    """Return the place of a rung, 0 for none, on a ladder of so many."""
    if rung == 0:
        return Place.GROUND
    return Place.LAST if rung == rungs else Place.RUNG
