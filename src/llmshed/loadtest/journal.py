"""The journal of a calibration: each event that its machine was told, as it came, so that a run can be gone on with.

A line is a JSON object. The first says what was asked for; each other one is an event with the instant at which it was
told. The machine is a function of both, so that telling a new one the same events brings it to where the old one was.
"""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import orjson

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.calibration.events import Answered, Begun, Event, FirstToken, Read, Woken
from llmshed.errors import ExitCode, LlmshedError, OutputError
from llmshed.workload.asks import Ask, Outcome, Sample

SCHEMA = "llmshed.calibration/1"


class JournalError(LlmshedError):
    """A file is no journal of a calibration that could be gone on with."""

    exit_code = ExitCode.BAD_DATA


class Entry(NamedTuple):
    """An event of a journal.

    Args:
        now: instant at which it was told, on the clock of the run.
        event: what was told.
        ends_at: byte of the file behind it.
    """

    now: float
    event: Event
    ends_at: int


class Journal:
    """A journal that grows; a context manager.

    Args:
        path: where it is.
        header: what was asked for, for a new one; None to go on with one that is there.
        keep_bytes: of one that is there, what is kept of it.

    Raises:
        OutputError: it cannot be written.
    """

    def __init__(self, path: Path, header: dict[str, Any] | None, keep_bytes: int = 0) -> None:
        self._path = path
        try:
            self._file = path.open("wb" if header is not None else "r+b", buffering=0)
            if header is None:
                self._file.seek(keep_bytes)
                self._file.truncate()
        except OSError as error:
            raise self._unwritable(error) from None
        self._header = header

    def __enter__(self) -> Self:
        """Begin a new one with its header.

        Raises:
            OutputError: the file cannot take it.
        """
        if self._header is not None:
            try:
                self._write({"schema": SCHEMA, **self._header})
            except OutputError:
                self._file.close()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it; what was written stays."""
        self._file.close()

    def write(self, event: Event, now: float) -> None:
        """Append an event.

        Raises:
            OutputError: the file cannot take it.
        """
        self._write({"now": now, **_written(event)})

    def _write(self, line: dict[str, Any]) -> None:
        try:
            self._file.write(orjson.dumps(line) + b"\n")
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> OutputError:
        return OutputError(f"{self._path}: cannot be written: {error.strerror}")


def read_journal(content: bytes) -> tuple[dict[str, Any], list[Entry]]:
    """Return the header and the events of a journal; a last line that broke off is left out.

    Raises:
        JournalError: it is none, or of another version.
    """
    lines = content.split(b"\n")
    header = _parsed(lines[0])
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        raise JournalError(f"this is no journal of a calibration ({SCHEMA})")
    return header, list(_entries(lines))


def _parsed(line: bytes) -> Any:
    """Return what a line holds; None where it holds no JSON."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _entries(lines: list[bytes]) -> Iterator[Entry]:
    ends_at = len(lines[0]) + 1
    for number, line in enumerate(lines[1:-1], 2):  # behind the last line break is nothing, or a line that broke off
        told = _parsed(line)
        ends_at += len(line) + 1
        try:
            yield Entry(float(told["now"]), _event(told), ends_at)
        except (KeyError, TypeError, ValueError):
            raise JournalError(f"this is no journal of a calibration: line {number} is none of its events") from None


def _written(event: Event) -> dict[str, Any]:
    match event:
        case Begun(reading):
            return {"event": "begun", "reading": None if reading is None else asdict(reading)}
        case Read(reading):
            return {"event": "read", "reading": asdict(reading)}
        case FirstToken(ask_id):
            return {"event": "first_token", "ask": ask_id}
        case Answered(sample):
            return {"event": "answered", "sample": asdict(sample)}
        case Woken():
            return {"event": "woken"}


def _event(told: dict[str, Any]) -> Event:
    match told["event"]:
        case "begun":
            return Begun(None if told["reading"] is None else ReplicaReading(**told["reading"]))
        case "read":
            return Read(ReplicaReading(**told["reading"]))
        case "first_token":
            return FirstToken(told["ask"])
        case "answered":
            sample = dict(told["sample"])
            sample["ask"] = Ask(**sample["ask"])
            sample["token_times"] = tuple(sample["token_times"])
            sample["outcome"] = Outcome(sample["outcome"])
            return Answered(Sample(**sample))
        case "woken":
            return Woken()
        case other:
            raise ValueError(f"an event is called {other}")
