"""What in a tokenizer.json lets a short text become much work: normalisers that expand, patterns that backtrack."""

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from llmshed.tokenizing.structure import steps

CANONICAL_GROWTH: Final = 3.0
"""Bytes that one becomes in NFC and NFD at most (U+1D160); a warning is due beyond it."""
_SCANNED_CODES: Final = (range(0x20, 0xD800), range(0xE000, 0x30000))
"""All planes that hold characters with a decomposition."""


class Suspicion(NamedTuple):
    """One finding.

    Args:
        level: `warning` where a prompt can be made slow or large by it, `note` for what is bounded and known.
        kind: a word for machines.
        detail: a sentence without its full stop.
    """

    level: Literal["warning", "note"]
    kind: Literal["expansion", "backtracking", "slow", "memory", "template", "whole"]
    detail: str


def expansion(normalise: Callable[[str], str] | None) -> Suspicion | None:
    """Find the character that a normaliser makes longest for its bytes; None where none grows.

    Each character that Unicode can take apart is tried alone; those are what normalisers rewrite.
    """
    if normalise is None:
        return None
    scanned = (chr(code) for codes in _SCANNED_CODES for code in codes)
    characters = (one for one in scanned if unicodedata.normalize("NFKD", one) != one)
    grown = ((normalise(character), character) for character in characters)
    growth, worst, made = max((len(made.encode()) / len(one.encode()), one, made) for made, one in grown)
    if growth <= 1:
        return None
    detail = (
        f"the normaliser makes {growth:g} bytes of each byte of U+{ord(worst):04X}, {len(made)} characters of one:"
        " a prompt can have more tokens than bytes"
    )
    return Suspicion("warning" if growth > CANONICAL_GROWTH else "note", "expansion", detail)


def backtracking(described: Mapping[str, Any]) -> Iterator[Suspicion]:
    """Yield a warning for each pattern of a tokenizer.json in which a repetition stands inside a repetition."""
    for where, pattern in _patterns(described):
        if (group := nested_repetition(pattern)) is not None:
            detail = (
                f"the pattern of the {where} repeats what repeats, {group[:60]!r}: a matcher that backtracks can take"
                " time that doubles with each character"
            )
            yield Suspicion("warning", "backtracking", detail)


def _patterns(described: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for section, inside in (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers")):
        for step in steps(described.get(section), inside):
            match step.get("pattern"):
                case {"Regex": str(pattern)}:
                    yield f"{section} {step['type']}", pattern
                case _:
                    continue


class _Group(NamedTuple):
    begin: int
    atomic: bool


def nested_repetition(pattern: str) -> str | None:
    """Return the first group that is repeated without end and holds such a repetition itself; None for none.

    Possessive repetitions (`a++`) and atomic groups (`(?>...)`) give nothing back, so they are harmless.
    """
    open_groups = [_Group(0, atomic=False)]
    repeats = [False]  # whether each open group holds a repetition that can give back
    place, closed = 0, (False, 0)  # whether the group that has just been closed does, and where it began
    while place < len(pattern):
        sign = pattern[place]
        after = place + 1
        just_closed = (False, 0)
        if sign == "\\":
            after += 1
        elif sign == "[":
            after = _class_end(pattern, after)
        elif sign == "(":
            open_groups.append(_Group(place, atomic=pattern.startswith("(?>", place)))
            repeats.append(False)
            after += 1 if pattern.startswith("(?", place) else 0  # the mark is no repetition
        elif sign == ")" and len(open_groups) > 1:
            group, inner = open_groups.pop(), repeats.pop()
            just_closed = (inner and not group.atomic, group.begin)
            repeats[-1] |= just_closed[0]
        elif (length := _endless(pattern, place)) > 0:
            after = place + length
            possessive = pattern.startswith("+", after)
            if closed[0] and not possessive:
                return pattern[closed[1] : after]
            repeats[-1] |= not possessive
            after += possessive
        place, closed = after, just_closed
    return None


def _class_end(pattern: str, place: int) -> int:
    """Return where a character class ends; a bracket that comes first in it is one of its characters."""
    if pattern.startswith("^", place):
        place += 1
    if pattern.startswith("]", place):
        place += 1
    while place < len(pattern) and pattern[place] != "]":
        place += 2 if pattern[place] == "\\" else 1
    return place + 1


def _endless(pattern: str, place: int) -> int:
    """Return the length of a repetition without an upper bound that stands here; 0 for none."""
    if pattern[place] in "*+":
        return 1
    if pattern[place] != "{":
        return 0
    inside, closing, _ = pattern[place + 1 :].partition("}")
    least, comma, most = inside.partition(",")
    endless = bool(closing and comma and not most.strip() and least.strip().isdigit())
    return len(inside) + 2 if endless else 0
