"""Strings that are known to be dear to tokenize for their bytes, each one unit over and over."""

from collections.abc import Mapping
from typing import Final

BOMBS: Final[Mapping[str, str]] = {
    "letter": "a",
    "capital": "A",
    "digit": "1",
    "letter and stop": "a.",
    "letter and capital": "aA",
    "letter and digit": "a1",
    "apostrophe": "'s",
    "space": " ",
    "line end": "\n",
    "space and line end": " \n",
    "tab": "\t",
    "equals sign": "=",
    "brackets": "[](){}",
    "marks of control tokens": "<|",
    "base64": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "accented": "\u00e9",
    "combining marks": "\u0301",
    "ideograph": "\u5b57",
    "hangul parts": "\u1112\u1161\u11ab",
    "ligature of a phrase": "\ufdfa",
    "joined emoji": "\U0001f469\u200d",
    "null": "\x00",
}
"""Units by what they are. Runs of one class make a splitter's piece as long as the text; marks keep a normaliser from
composing early; U+FDFA is eighteen characters in NFKC."""

_PROSE: Final = (
    "The queue grew faster than it drained, so the gateway refused the newest jobs of the night and told each a wait. "
    "By morning 4,096 of them had come back, one by one; nobody's question was lost.\n"
)


def bomb(name: str, size_bytes: int) -> str:
    """Return a string of one unit, of at most so many bytes in UTF-8."""
    return _repeated(BOMBS[name], size_bytes)


def prose(size_bytes: int) -> str:
    """Return English text of at most so many bytes, to which others are compared."""
    return _repeated(_PROSE, size_bytes)


def _repeated(unit: str, size_bytes: int) -> str:
    return unit * (size_bytes // len(unit.encode()))
