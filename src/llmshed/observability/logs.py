"""The daemon's log: one JSON object a line, pure ASCII, and never a byte that a client sent as prompt or key.

A module logs an event by name, with its values beside it: `log.warning("replica_down", extra={"replica": name})`.
"""

import json
import logging
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from llmshed.errors import ConfigError, EngineError, ProfileError, TokenizerError
from llmshed.observability.text import one_line
from llmshed.observability.writer import LineWriter

_OWN = "llmshed"
_STANDARD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_TELLABLE = (OSError, ConfigError, EngineError, ProfileError, TokenizerError)
"""Errors whose texts come from the machine and the configuration; any other's may quote a client's request."""
_MAX_FRAMES = 12
_MAX_VALUE_CHARS = 1000


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object: `ts` (UTC), `level`, `event`, `logger`, then the event's own values."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without its line feed."""
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "level": record.levelname.lower(),
            "event": _event(record),
            "logger": record.name,
        }
        for name, value in vars(record).items():
            if name not in _STANDARD_ATTRIBUTES:
                line[name] = _plain(value)
        if record.exc_info and record.exc_info[1] is not None:
            line |= _told(record.exc_info[1])
        return json.dumps(line)  # ASCII only, so that no terminal control of any encoding passes


class _ToWriter(logging.Handler):
    def __init__(self, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._write = write
        self.setFormatter(JsonLines())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(self.format(record).encode() + b"\n")
        except Exception:  # noqa: BLE001 - a log line that cannot be made must not end the request that it tells of
            self._write(b'{"level":"error","event":"log_line_failed"}\n')


def configure_logging(level: str, write: Callable[[bytes], None]) -> None:
    """Send every logger's records of `level` (`debug`, `info`, `warning`, `error`) and above to `write`, as lines.

    May be called again to change either; earlier handlers of the root logger are removed.
    """
    root = logging.getLogger()
    for handler in root.handlers[:]:
        root.removeHandler(handler)
    root.addHandler(_ToWriter(write))
    root.setLevel(level.upper())


def decision_sink(
    setting: str, stderr: LineWriter, dropped: Callable[[int], None]
) -> tuple[Callable[[bytes], None], LineWriter | None]:
    """Return where decision lines go for a `log.decisions` setting, and the writer to reopen and close, if it has one.

    Standard error shares the log's own writer, so that lines of the two never mix.

    Raises:
        ConfigError: the path cannot be appended to.
    """
    if setting == "off":
        return _discard, None
    if setting == "stderr":
        return stderr.write, None
    try:
        writer = LineWriter(1 if setting == "stdout" else Path(setting), dropped)
    except OSError as error:
        problem = (
            f"log.decisions: cannot append to {setting!r}: {error.strerror}; accepted: stderr, stdout, off, a path"
        )
        raise ConfigError((problem,)) from error
    return writer.write, writer


def _discard(line: bytes) -> None:
    del line


def _event(record: logging.LogRecord) -> str:
    """Return the message; of foreign loggers only its template's first line.

    Their arguments and further lines may hold anything: asyncio's carry the repr of an exception, and with it, perhaps,
    a prompt.
    """
    if record.name.split(".", 1)[0] == _OWN:
        return one_line(record.getMessage())
    lines = str(record.msg).splitlines()
    return one_line(lines[0]) if lines else ""


def _plain(value: object) -> object:
    """Return a value that JSON has; of any other object only its type, since its repr may hold a request."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return one_line(str(value), _MAX_VALUE_CHARS)
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in value]
        case dict():
            return {one_line(str(key), _MAX_VALUE_CHARS): _plain(item) for key, item in value.items()}
        case Path():
            return one_line(str(value), _MAX_VALUE_CHARS)
        case _:
            return f"<{type(value).__name__}>"


def _told(error: BaseException) -> dict[str, object]:
    """Return an exception as its type, its text where that is harmless, and the frames, innermost last, no locals."""
    frames = traceback.extract_tb(error.__traceback__)[-_MAX_FRAMES:]
    told: dict[str, object] = {
        "error": type(error).__name__,
        "frames": [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames],
    }
    if isinstance(error, _TELLABLE):
        told["error_text"] = one_line(str(error), _MAX_VALUE_CHARS)
    if error.__cause__ is not None:
        told["cause"] = type(error.__cause__).__name__
    return told
