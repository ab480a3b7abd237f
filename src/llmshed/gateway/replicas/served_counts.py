"""Whether replicas count the prompts that they serve as the gateway did.

The self-check compares probes when a replica is met. What it serves afterwards shows the rest: a template that was
changed under a running gateway, a field that one side renders and the other leaves out. Nothing is refused for it; each
difference is an error of a reservation by so many tokens.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

LOG_SECONDS = 60.0
"""Between two log lines about one replica."""

_log = logging.getLogger(__name__)


class CountObserver(Protocol):
    """Who counts the comparisons."""

    def count_compared(self, replica: str, *, equal: bool) -> None:
        """Note one prompt that both counted."""


@dataclass(slots=True)
class _Seen:
    """What was seen of one replica; `logged_at` is a clock reading, None before the first line."""

    compared: int = 0
    unlike: int = 0
    most_tokens: int = 0
    logged_at: float | None = None
    unlike_before: int = 0


class ServedCounts:
    """Compares the counts of all replicas, for as long as each is configured."""

    def __init__(self, observer: CountObserver, now: Callable[[], float]) -> None:
        """Start without a comparison; `now` reads the clock in seconds."""
        self._observer = observer
        self._now = now
        self._seen: dict[str, _Seen] = {}

    def compare(self, replica: str, counted_tokens: int, engine_tokens: int) -> None:
        """Take in both counts of one prompt; a difference is logged, at most once in a minute for a replica."""
        seen = self._seen.setdefault(replica, _Seen())
        seen.compared += 1
        equal = counted_tokens == engine_tokens
        self._observer.count_compared(replica, equal=equal)
        if equal:
            return
        seen.unlike += 1
        seen.most_tokens = max(seen.most_tokens, abs(counted_tokens - engine_tokens))
        now = self._now()
        if seen.logged_at is not None and now - seen.logged_at < LOG_SECONDS:
            return
        _log.warning(
            "served_counts_differ",
            extra={
                "replica": replica,
                "counted_tokens": counted_tokens,
                "engine_tokens": engine_tokens,
                "differences": seen.unlike - seen.unlike_before,
                "since_seconds": None if seen.logged_at is None else round(now - seen.logged_at, 1),
            },
        )
        seen.logged_at, seen.unlike_before = now, seen.unlike

    def forget(self, replica: str) -> None:
        """Forget a replica that is no longer configured."""
        self._seen.pop(replica, None)

    def report(self) -> dict[str, dict[str, Any]]:
        """Return by replica how many prompts were compared, how many differed, and by how many tokens at most."""
        return {
            name: {"compared": seen.compared, "unlike": seen.unlike, "most_tokens": seen.most_tokens}
            for name, seen in self._seen.items()
        }
