"""Passes for drills: who may use the admin listener draws one, and the data listener knows it by its digest.

The admin token itself never travels to the data listener, which others may stand before or listen to. That a client is
on this machine is not enough there either: behind a proxy on the same machine everybody is.
"""

import hashlib
import secrets
from typing import Final

VALID_SECONDS: Final = 86_400.0
"""Longer than any drill takes; a pass ends with the process, too."""
MOST_PASSES: Final = 16
"""Passes at a time; one more makes the oldest invalid."""
_BYTES: Final = 24


class Passes:
    """The passes that are valid, by the digests of their words."""

    def __init__(self) -> None:
        """Start with none."""
        self._until: dict[bytes, float] = {}

    def draw(self, now: float) -> str:
        """Return a new pass."""
        word = secrets.token_urlsafe(_BYTES)
        self._until[_digest(word)] = now + VALID_SECONDS
        while len(self._until) > MOST_PASSES:
            del self._until[next(iter(self._until))]
        return word

    def holds(self, word: str, now: float) -> bool:
        """Say whether a word is a valid pass; what is compared are digests, which tell nothing by their time."""
        return now < self._until.get(_digest(word), now)


def _digest(word: str) -> bytes:
    return hashlib.sha256(word.encode("utf-8", "surrogateescape")).digest()
