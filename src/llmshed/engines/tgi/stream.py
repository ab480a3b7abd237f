"""Follows the event streams of Text Generation Inference."""

from collections.abc import Mapping
from typing import Any, Final

from llmshed.engines.events import EventReader, told_count, told_or_none
from llmshed.engines.repeated_event import RepeatedEvent
from llmshed.engines.tgi.failures import read_event_failure

_STRAY: Final = -1
"""Index under which chunks are counted that name none of the call's sequences."""


class NativeStreamReader(EventReader):
    """Reads streams of `/` and `/generate_stream`: one event a token, the whole text in the last."""

    def __init__(self) -> None:
        """Begin before the first byte."""
        super().__init__(read_event_failure)

    def _done(self) -> None:
        """Ignore it: TGI ends these streams without a terminator."""

    def _read(self, event: Mapping[str, Any]) -> None:
        facts = self.facts
        if isinstance(event.get("token"), dict):
            facts.output_tokens += 1
        details = event.get("details")
        if isinstance(details, dict):
            facts.output_tokens = told_count(details.get("generated_tokens"), facts.output_tokens)
            facts.input_tokens = told_or_none(details.get("input_length"))
            self._finish(details.get("finish_reason"))
        if isinstance(event.get("generated_text"), str):
            self._complete()


class OpenAIStreamReader(EventReader):
    """Reads streams of the `/v1` routes: one chunk a token, told apart by `index` where several sequences interleave.

    A usage beside a choice is that sequence's, as completions send it; one without choices is the whole call's. An
    event that only repeats the last one with another text is counted without being parsed.
    """

    def __init__(self, sequences: int, *, sends_done: bool, text_key: bytes = b"content") -> None:
        """Begin before the first byte; streams of versions that send no `[DONE]` end with the last finish reason.

        `text_key` is the name under which this route tells the text of a token.
        """
        super().__init__(read_event_failure)
        self._text_key = text_key
        self._sequences = sequences
        self._sends_done = sends_done
        self._counts: dict[int, int] = {}
        self._finished: set[int] = set()
        self._repeated: RepeatedEvent | None = None
        self._plain_index: int | None = None  # of the last event, if that told of one token more and nothing else

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        begins_an_event = self._scanner.between_events
        index, repeated = self._plain_index, self._repeated
        if begins_an_event and index is not None and repeated is not None and repeated.matches(data):
            self.facts.data_events += 1
            self.facts.output_tokens += 1
            self._counts[index] += 1
            return
        self._plain_index = None
        super().feed(data)
        self._repeated = self._learnt(data) if begins_an_event else None

    def _learnt(self, data: bytes) -> RepeatedEvent | None:
        """Return what repeats of these bytes look like; several sequences take turns, so that none repeats the last."""
        plain = self._plain_index is not None and self._sequences == 1
        return RepeatedEvent.of(data, self._text_key) if plain else None

    def _done(self) -> None:
        self._complete()

    def _read(self, event: Mapping[str, Any]) -> None:
        choices = event.get("choices")
        usage = event.get("usage")
        told = None
        if isinstance(usage, dict):
            told = usage.get("completion_tokens")
            self.facts.input_tokens = told_or_none(usage.get("prompt_tokens"))
        if not isinstance(choices, list) or not choices:
            self.facts.output_tokens = told_count(told, self.facts.output_tokens)
            return
        choice = choices[0] if isinstance(choices[0], dict) else {}
        index = self._index(choice.get("index"))
        before = self._counts.get(index, 0)
        now = told_count(told, before + 1)
        self._counts[index] = now
        self.facts.output_tokens += now - before
        if self._finish(choice.get("finish_reason")):
            self._finished.add(index)
            if not self._sends_done and len(self._finished) >= self._sequences:
                self._complete()
        elif told is None:
            self._plain_index = index

    def _index(self, told: object) -> int:
        return told if type(told) is int and 0 <= told < self._sequences else _STRAY
