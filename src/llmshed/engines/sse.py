"""Reads an event stream from the side: bytes in as they come, the data of whole events out.

The format is that of the HTML standard, section 9.2 (server-sent events): lines end with LF, CR LF or CR, a colon first
makes a comment, one space after `data:` is not data, a blank line ends an event. Nothing here changes a byte.
"""

from typing import Final

MAX_EVENT_BYTES: Final = 4 * 2**20
"""Data kept of one event; a last event that repeats the whole answer stays far below it."""


class EventScanner:
    """Cuts a stream into the data of its events, however its bytes were split.

    Work is linear in the bytes, and at most `max_event_bytes` (at least 5) of data are held. An event that is larger
    comes out as None: it was there, and nothing more is known of it.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        """Begin before the first byte."""
        self._max_event_bytes = max_event_bytes
        self._short_bytes = max_event_bytes - _LINE_COST_BYTES
        self._line = bytearray()
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._oversize = False
        self._after_cr = False

    @property
    def between_events(self) -> bool:
        """Say whether the next byte begins an event, whatever it is."""
        return not (self._line or self._data or self._oversize or self._after_cr)

    def feed(self, piece: bytes) -> list[bytes | None]:
        """Take the next bytes and return the data of the events that they end."""
        if not piece:
            return []
        if (
            # One event of one line, as engines send nearly all of theirs.
            piece.startswith(b"data: ")
            and piece.endswith(b"\n\n")
            and piece.find(b"\n") == len(piece) - 2
            and b"\r" not in piece
            and len(piece) <= self._short_bytes
            and self.between_events
        ):
            return [piece[6:-2]]
        if self._after_cr and piece[0] == _LF:
            piece = piece[1:]
        self._after_cr = piece.endswith(b"\r")
        # bytes.splitlines knows LF, CR and CR LF only; that of str would also cut at U+2028 inside a text.
        lines = piece.splitlines()
        rest = lines.pop() if lines and piece[-1] not in _LINE_ENDS else b""
        events: list[bytes | None] = []
        for line in lines:
            self._end_line(line, events)
        self._add_to_line(rest)
        return events

    def end(self) -> list[bytes | None]:
        """Note the end of the stream; an event that lacks its blank line comes out, since clients read line by line."""
        events: list[bytes | None] = []
        self._end_line(b"", events)
        self._end_event(events)
        return events

    def _add_to_line(self, part: bytes) -> None:
        """Keep a line that has not ended, up to the one byte that tells it from a line of the greatest size."""
        self._line += part[: self._max_event_bytes + 1 - len(self._line)]

    def _end_line(self, line: bytes, events: list[bytes | None]) -> None:
        if self._line:
            self._add_to_line(line)
            line = bytes(self._line)
            self._line.clear()
        if line.startswith(b"data:"):
            value = line[6:] if line.startswith(b"data: ") else line[5:]
            self._data_bytes += len(value) + _LINE_COST_BYTES
            if len(line) <= self._max_event_bytes and self._data_bytes <= self._max_event_bytes:
                self._data.append(value)
            else:
                self._oversize = True
                self._data.clear()
        elif not line:
            self._end_event(events)

    def _end_event(self, events: list[bytes | None]) -> None:
        if self._oversize:
            events.append(None)
        elif self._data:
            events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
        self._data.clear()
        self._data_bytes = 0
        self._oversize = False


_LINE_COST_BYTES: Final = 64
"""What Python needs to keep a line, however short; charged to the event's size."""
_LF: Final = 10
_LINE_ENDS: Final = b"\r\n"
