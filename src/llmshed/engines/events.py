"""What all event streams of engines share: events out of bytes, error events, the end."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from llmshed.engines.base import EngineFailure, StreamFacts
from llmshed.engines.fields import INT32_MAX
from llmshed.engines.sse import EventScanner

_DONE: Final = b"[DONE]"
_FINISH_CHARACTERS: Final = 64


class EventReader(ABC):
    """Follows a stream of JSON events, with or without `[DONE]` at its end.

    The first error event stays the failure, and a stream that failed is never `complete`, though engines send `[DONE]`
    after an error too. Bytes of any kind are read; what is no event of the engine counts as seen and tells nothing.
    """

    def __init__(self, read_failure: Callable[[Mapping[str, Any]], EngineFailure]) -> None:
        """Begin before the first byte; `read_failure` reads an event that holds an `error`."""
        self.facts = StreamFacts()
        self._scanner = EventScanner()
        self._read_failure = read_failure

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        for event in self._scanner.feed(data):
            self._take(event)

    def end(self) -> None:
        """Note that the upstream closed the stream."""
        for event in self._scanner.end():
            self._take(event)

    def _take(self, data: bytes | None) -> None:
        self.facts.data_events += 1
        if data is None:
            return
        if data == _DONE:
            self._done()
            return
        try:
            event = orjson.loads(data)
        except orjson.JSONDecodeError:
            return
        if not isinstance(event, dict):
            return
        if event.get("error"):
            self._fail(self._read_failure(event))
            return
        self._read(event)

    @abstractmethod
    def _done(self) -> None:
        """Take the terminator."""

    @abstractmethod
    def _read(self, event: Mapping[str, Any]) -> None:
        """Take an event that is no error."""

    def _fail(self, failure: EngineFailure) -> None:
        self.facts.complete = False
        if self.facts.failure is None:
            self.facts.failure = failure

    def _complete(self) -> None:
        if self.facts.failure is None:
            self.facts.complete = True

    def _finish(self, reason: object) -> bool:
        """Keep a finish reason; engines write null, or an empty string, while a sequence runs."""
        if not isinstance(reason, str) or not 0 < len(reason) <= _FINISH_CHARACTERS:
            return False
        self.facts.finish_reason = reason
        return True


def told_count(told: object, otherwise: int) -> int:
    """Return a count that the engine told, if it is one."""
    count = told_or_none(told)
    return otherwise if count is None else count


def told_or_none(told: object) -> int | None:
    """Return a count that the engine told; None if it is none."""
    return told if type(told) is int and 0 <= told <= INT32_MAX else None
