"""Tables of request fields: what becomes of each one, and the checks that every engine's table shares.

A table names each field that clients are known to send. A field that stands in no table is refused by name, since an
engine that ignores it, and one that does not, would give one body two meanings. A null is an absent field everywhere.
"""

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Final, NamedTuple

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError

INT32_MAX: Final = 2**31 - 1
UINT64_MAX: Final = 2**64 - 1
_SHOWN_CHARACTERS: Final = 64


class Fate(StrEnum):
    """What becomes of a field."""

    COUNTED = "counted"
    """Read for the count, the reservation or the route, and forwarded."""
    FORWARDED = "forwarded"
    """Passed to the engine, which reads it."""
    DROPPED = "dropped"
    """Taken, since clients send it, and not forwarded, since the engine has no use for it."""
    REFUSED = "refused"
    """Answered with `unsupported_field`."""


class _KindRow(NamedTuple):
    text: str
    fits: Callable[[Any], bool]


def _is_integer(low: int, high: int) -> Callable[[Any], bool]:
    # `type() is int` rather than isinstance: True is an int to Python and a boolean to JSON.
    return lambda value: type(value) is int and low <= value <= high


class Kind(Enum):
    """What a field holds, with the words that an error tells it in."""

    text: str
    fits: Callable[[Any], bool]

    def __init__(self, text: str, fits: Callable[[Any], bool]) -> None:
        """Keep both where they are found without `value`, which takes longer than most of what they ask."""
        self.text = text
        self.fits = fits

    ANY = _KindRow("anything", lambda _: True)
    BOOLEAN = _KindRow("true or false", lambda value: type(value) is bool)
    INTEGER = _KindRow(f"a whole number from 0 to {INT32_MAX:,}", _is_integer(0, INT32_MAX))
    COUNT = _KindRow(f"a whole number from 1 to {INT32_MAX:,}", _is_integer(1, INT32_MAX))
    COPIES = _KindRow("a whole number from 1 to 128", _is_integer(1, 128))
    SEED = _KindRow(f"a whole number from 0 to {UINT64_MAX:,}", _is_integer(0, UINT64_MAX))
    NUMBER = _KindRow("a number", lambda value: type(value) in {int, float})
    TEXT = _KindRow("a string", lambda value: type(value) is str)
    HINT = _KindRow("a string of at most 256 characters", lambda value: type(value) is str and len(value) <= 256)
    TEXTS = _KindRow(
        "a string or a list of strings",
        lambda value: type(value) is str or (type(value) is list and all(type(text) is str for text in value)),
    )
    CHOICE = _KindRow("a string or an object", lambda value: type(value) in {str, dict})
    OBJECT = _KindRow("an object", lambda value: type(value) is dict)
    OBJECTS = _KindRow(
        "a list of objects", lambda value: type(value) is list and all(type(item) is dict for item in value)
    )


@dataclass(frozen=True, slots=True)
class Field:
    """One row of a table; `note` says why a field is dropped or refused, or what it is read for."""

    fate: Fate
    kind: Kind = Kind.ANY
    note: str = ""


FieldTable = Mapping[str, Field]


def counted(kind: Kind, note: str) -> Field:
    """Make a row of a field that the gateway reads."""
    return Field(Fate.COUNTED, kind, note)


def forwarded(kind: Kind, note: str = "") -> Field:
    """Make a row of a field that is only passed on."""
    return Field(Fate.FORWARDED, kind, note)


def dropped(note: str, kind: Kind = Kind.ANY) -> Field:
    """Make a row of a field that ends at the gateway."""
    return Field(Fate.DROPPED, kind, note)


def refused(note: str) -> Field:
    """Make a row of a field that is an error; `note` completes the sentence "`field` is not accepted here: ..."."""
    return Field(Fate.REFUSED, Kind.ANY, note)


def take_fields(table: FieldTable, given: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return the fields that are not null, in the order they were sent, after each was held to its row.

    Args:
        table: the rows of this object.
        given: the object.
        path: where the object stands in the body, with its dot (`parameters.`); empty for the body itself.

    Raises:
        BodyError: `unsupported_field` for a refused or unknown field, `malformed` for one of the wrong kind.
    """
    taken: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        row = table.get(name)
        if row is None:
            raise _unknown(table, name, path)
        if row.fate is Fate.REFUSED:
            text = f"{shown(path + name)} is not accepted here: {row.note}"
            raise BodyError(Reason.UNSUPPORTED_FIELD, text, path + name)
        if not row.kind.fits(value):
            raise malformed(path + name, row.kind.text, value)
        taken[name] = value
    return taken


def kept_fields(table: FieldTable, taken: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that go on to the engine."""
    return {name: value for name, value in taken.items() if table[name].fate is not Fate.DROPPED}


def malformed(param: str, accepted: str, value: object) -> BodyError:
    """Make the error of a value that is not what its field takes."""
    return BodyError(Reason.MALFORMED, f"{shown(param)} must be {accepted}, not {_told(value)}", param)


def missing(param: str, accepted: str) -> BodyError:
    """Make the error of a field that is needed and absent or null."""
    return BodyError(Reason.MALFORMED, f"{shown(param)} is missing; send {accepted}", param)


def shown(name: str) -> str:
    """Return a client's word safe to print: one line of ASCII in quotes, cut to a bounded length."""
    cut = name if len(name) <= _SHOWN_CHARACTERS else name[: _SHOWN_CHARACTERS - 3] + "..."
    return "`" + json.dumps(cut)[1:-1] + "`"


def _unknown(table: FieldTable, name: str, path: str) -> BodyError:
    """Make the error of a field that stands in no table, with the nearest name that does."""
    near: list[str] = []
    if len(name) <= _SHOWN_CHARACTERS:  # comparing costs the product of both lengths
        known = [known for known, row in table.items() if row.fate is not Fate.REFUSED]
        near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean `{path}{near[0]}`?" if near else f"accepted: {_accepted(table)}"
    text = f"{shown(path + name)} is not a field that this route takes; {hint}"
    return BodyError(Reason.UNSUPPORTED_FIELD, text, path + name if len(name) <= _SHOWN_CHARACTERS else None)


def _accepted(table: FieldTable) -> str:
    """List the fields that have an effect."""
    names = [name for name, row in table.items() if row.fate in {Fate.COUNTED, Fate.FORWARDED}]
    return ", ".join(names)


def _told(value: object) -> str:
    """Say what a value is without repeating text of the client; numbers are short and tell most."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"{value}"
        case str():
            return "an empty string" if not value else "a string"
        case list():
            return f"a list of {_contents(value)}" if value else "an empty list"
        case dict():
            return "an object"
        case _:
            return "null"


def _contents(value: list[Any]) -> str:
    """Name what a list holds; a number is a number, whole or not."""
    kinds = {_PLURALS[type(item)] for item in value}
    return kinds.pop() if len(kinds) == 1 else "several kinds"


_PLURALS: Final[Mapping[type, str]] = {
    bool: "booleans",
    int: "numbers",
    float: "numbers",
    str: "strings",
    list: "lists",
    dict: "objects",
    type(None): "nulls",
}
