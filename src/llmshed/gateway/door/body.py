"""Request bodies as one JSON object with exactly one reading.

Two readers of one text must see one value, so whatever JSON leaves open is refused here: a key that is named twice, a
lone surrogate, a byte order mark, NaN, a number beyond a double. orjson refuses all but the first two by itself; the
keys are compared by counting, since no parser that is fast enough tells of them.
"""

import json
from typing import Any, Final

import orjson

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.engines.fields import shown

MAX_DEPTH: Final = 64
MAX_NODES: Final = 100_000
_MOST_NAMED_STRINGS: Final = 10_000
"""Texts of more strings are refused for a duplicate key without its name, which takes the slow parser too long."""
_BOM: Final = b"\xef\xbb\xbf"


def parse_body(raw: bytes, max_depth: int = MAX_DEPTH, max_nodes: int = MAX_NODES) -> dict[str, Any]:
    """Parse a request body strictly, in time linear in its bytes.

    Args:
        raw: the body as it was received.
        max_depth: most objects and lists inside one another; the body itself is the first.
        max_nodes: most values that the text writes, the body itself included.

    Raises:
        BodyError: `malformed` for what is not one JSON object within the bounds, `duplicate_key` for a key that an
            object names twice; neither text holds more of the body than that key.
    """
    if not raw:
        raise BodyError(Reason.MALFORMED, "the body is empty; send one JSON object")
    if raw.startswith(_BOM):
        raise BodyError(Reason.MALFORMED, "the body begins with a byte order mark; send UTF-8 without one")
    if _values_written(raw, max_nodes) > max_nodes:
        raise BodyError(Reason.MALFORMED, f"the body holds more than the {max_nodes:,} values accepted")
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        # The parser's text holds what is wrong and where, and never a part of the document.
        raise BodyError(Reason.MALFORMED, f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BodyError(Reason.MALFORMED, f"the body is {_kind(body)}; send one JSON object")
    written = _strings_written(raw)
    if _strings_held(body, max_depth) != written:
        raise _duplicate(_doubled_key(raw) if written <= _MOST_NAMED_STRINGS else None)
    return body


def _values_written(raw: bytes, enough: int) -> int:
    """Count the values of a text that is JSON, before a great many are built; 0 when there are at most `enough`.

    A value follows each comma and each bracket that does not close at once, and one is the text itself. Only a text
    with more of them than `enough`, those inside strings included, is looked at more closely, and not even that one
    when it has so many strings that they cannot all be the key or the text of `enough` values.
    """
    if _separators(raw) < enough:
        return 0
    if (least := _strings_written(raw) // 2) > enough:
        return least
    outside = raw.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
    structure = b'"'.join(outside).translate(None, b" \t\r\n")
    return 1 + _separators(structure) - structure.count(b"[]") - structure.count(b"{}")


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _strings_held(body: dict[str, Any], max_depth: int) -> int:
    """Return the number of keys and string values, and hold the body to its depth."""
    strings = 0
    level: list[dict[str, Any] | list[Any]] = [body]
    depth = 1
    while level:
        if depth > max_depth:
            raise BodyError(Reason.MALFORMED, f"the body is nested deeper than the {max_depth} levels accepted")
        below: list[dict[str, Any] | list[Any]] = []
        for container in level:
            values: Any = container
            if type(container) is dict:
                strings += len(container)
                values = container.values()
            for value in values:
                kind = type(value)
                if kind is str:
                    strings += 1
                elif kind is dict or kind is list:
                    below.append(value)
        level = below
        depth += 1
    return strings


def _strings_written(raw: bytes) -> int:
    """Count the strings of a text that is known to be JSON.

    A backslash stands only inside strings there, and a run of them pairs up from its left. So once pairs are gone, a
    backslash before a quote is an escape, and every other quote opens or closes a string.
    """
    quotes = raw.count(b'"')
    if b"\\" in raw:
        quotes -= raw.replace(b"\\\\", b"").count(b'\\"')
    return quotes // 2


class _DuplicateKeyError(Exception):
    """Carries the key out of the second parse."""


def _doubled_key(raw: bytes) -> str | None:
    """Return the key that is there twice; None where it cannot be found.

    Parsing drops the first of two equal keys and what it held, and nothing else; so a text that wrote more strings than
    its value holds has such a key. Only then is the slower parser asked which.
    """
    try:
        json.loads(raw, object_pairs_hook=_distinct, parse_int=len, parse_float=len)
    except _DuplicateKeyError as error:
        return str(error)
    except RecursionError:  # a dropped value may be deeper than the bound that was checked
        pass
    return None


def _duplicate(key: str | None) -> BodyError:
    if key is None:
        return BodyError(Reason.DUPLICATE_KEY, "an object names a key twice; send each key once")
    message = f"an object names the key {shown(key)} twice; send it once"
    return BodyError(Reason.DUPLICATE_KEY, message, key if len(key) <= 64 else None)


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object that names a key twice; keep nothing of the others."""
    if len(dict(pairs)) == len(pairs):
        return
    keys: set[str] = set()
    for key, _ in pairs:
        if key in keys:
            raise _DuplicateKeyError(key)
        keys.add(key)


def _kind(value: object) -> str:
    """Name the JSON kind of a value that is no object."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "a number"
