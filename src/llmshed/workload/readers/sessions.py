"""Conversations found by the prefixes of their prompts, where a trace names none.

The rule: a request continues an earlier one when its prompt begins with every whole block of the earlier prompt, at
least two of them, and came within 30 minutes after it. Of several it continues the one with the longest prompt, and
joins its session; whoever continues nothing opens a session of its own. Two blocks, since the first is often a system
prompt that all share; whole blocks, since the last is cut where the prompt ended and its id is no other's.
"""

from cachetools import LRUCache

WITHIN_SECONDS = 1800.0
"""As long as the gateway remembers a conversation."""
LEAST_BLOCKS = 2
MOST_REMEMBERED = 32_768
"""Prompts remembered; the one that was continued longest ago is forgotten first."""


class SessionFinder:
    """Remembers the whole blocks of recent prompts, and whose session they are."""

    def __init__(self) -> None:
        # A prompt is found by its length and last id, then compared whole: ids need not name all that is before them.
        self._prompts: LRUCache[tuple[int, int], tuple[tuple[int, ...], str, float]] = LRUCache(MOST_REMEMBERED)
        self._opened = 0

    def session(self, at_seconds: float, ids: tuple[int, ...], whole_blocks: int) -> str:
        """Return the session of a prompt and remember it.

        Args:
            at_seconds: its arrival; never before that of the prompt before it.
            ids: one id for each block.
            whole_blocks: how many of them the prompt fills.
        """
        session = self._continued(at_seconds, ids)
        if session is None:
            self._opened += 1
            session = f"session-{self._opened}"
        whole = ids[:whole_blocks]
        if len(whole) >= LEAST_BLOCKS:
            self._prompts[len(whole), whole[-1]] = (whole, session, at_seconds)
        return session

    def _continued(self, at_seconds: float, ids: tuple[int, ...]) -> str | None:
        for length in range(len(ids), LEAST_BLOCKS - 1, -1):
            known = self._prompts.get((length, ids[length - 1]))
            if known is not None and at_seconds - known[2] <= WITHIN_SECONDS and known[0] == ids[:length]:
                return known[1]
        return None
