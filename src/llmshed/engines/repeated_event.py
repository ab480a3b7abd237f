"""Recognises events of a stream that differ from one that was read in the text of a token alone.

Engines write the same object for each token with another text in it. Reading one of them as JSON tells what all of them
tell, if the others are known to be the same JSON but for that text. For an event that was read,

    event = begin + text + end

where begin ends with `"KEY":"`, end starts with the closing quote, and no backslash stands anywhere, so that quotes
open and close strings in turn. Another piece is such an event if it has the same begin and end and between them valid
UTF-8 without quote, backslash or control character: that is what may stand in a JSON string without an escape.
"""

import re
from typing import Final, Self

_MOST_BYTES: Final = 65_536
"""Longer pieces are read like any other; far below what a scanner keeps of an event."""
_PLAIN: Final = re.compile(rb'[^"\\\x00-\x1f]*')


class RepeatedEvent:
    """The event, as what is before and after its text; whoever made it has seen that it is valid JSON."""

    __slots__ = ("_begin", "_end", "_least_bytes")

    def __init__(self, begin: bytes, end: bytes) -> None:
        """Keep the two ends."""
        self._begin = begin
        self._end = end
        self._least_bytes = len(begin) + len(end)

    @classmethod
    def of(cls, piece: bytes, key: bytes) -> Self | None:
        """Learn from a piece of a stream whose JSON was read; None unless it is one event of one line with such a text.

        Args:
            piece: bytes of the stream that begin behind a whole event.
            key: name of the member that holds the text, the first of that name.
        """
        one_line = piece.startswith(b"data:") and piece.find(b"\n") == len(piece) - 2 and piece.endswith(b"\n")
        if not one_line or b"\\" in piece or b"\r" in piece:
            return None
        opening = b'"' + key + b'":"'
        found = piece.find(opening)
        if found < 0:
            return None
        begins = found + len(opening)
        return cls(piece[:begins], piece[piece.index(b'"', begins) :])

    def matches(self, piece: bytes) -> bool:
        """Say whether a piece that begins behind a whole event is the same event with another text."""
        begins, ends = len(self._begin), len(piece) - len(self._end)
        return (
            self._least_bytes <= len(piece) <= _MOST_BYTES
            and piece.startswith(self._begin)
            and piece.endswith(self._end)
            and _PLAIN.fullmatch(piece, begins, ends) is not None
            and (piece.isascii() or _is_utf8(piece[begins:ends]))
        )


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
