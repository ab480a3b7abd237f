"""The audit: one JSON object a line for each act of a person and each step of a ladder, appended and never changed.

The file is opened for each append, so that it may be moved away at any time. A line is there whole or not at all: what
a full disk cut off is taken back, and what the machine's fall cut off is ended before the next line. Texts of people
are written as JSON strings, so that none can forge a line.
"""

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

AUDIT_SCHEMA: Final = "llmshed.audit/1"
_TAIL_BYTES: Final = 524_288
"""How much of the file's end is read at start: more entries than are remembered."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that happened to a pool's ladder, or to the configuration.

    Args:
        time_seconds: wall clock, seconds since the epoch.
        what: `trigger`, `release`, `restored` (a hold that outlived the process), `failed` (an act that was written
            down and could not be done), `step`, or `reload` and `reload_refused` of a configuration and its keys.
        pool: the pool; None where it is about all.
        ladder: label of its ladder, likewise.
        config_version: configuration in force.
        rung: name of the rung that is held, released, or in force after a step; None for the ground.
        before: number of the rung in force before; None where it did not matter.
        after: the same after it; equal where a held rung hides a step of the rule, or the rule an end of a hold.
        by_rule: number of the rung by rule alone, after a step.
        cause: why a step was made; None for what is none.
        reason: why, in a person's words.
        for_seconds: time that a rung was to be held for.
        who: where an act came from; None for a step.
    """

    time_seconds: float
    what: str
    pool: str | None
    ladder: str | None
    config_version: str
    rung: str | None = None
    before: int | None = None
    after: int | None = None
    by_rule: int | None = None
    cause: str | None = None
    reason: str | None = None
    for_seconds: float | None = None
    who: str | None = None

    def record(self) -> dict[str, Any]:
        """Return the line as a JSON object; docs/ladder.md explains each field."""
        time = datetime.fromtimestamp(self.time_seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
        return {
            "schema": AUDIT_SCHEMA,
            "time": time,
            "time_seconds": self.time_seconds,
            "what": self.what,
            "pool": self.pool,
            "ladder": self.ladder,
            "rung": self.rung,
            "before": self.before,
            "after": self.after,
            "by_rule": self.by_rule,
            "cause": self.cause,
            "reason": self.reason,
            "for_seconds": self.for_seconds,
            "who": self.who,
            "config_version": self.config_version,
        }


_FIELDS: Final = frozenset(field.name for field in fields(AuditEntry))


def append_lines(path: Path, records: Sequence[dict[str, Any]], *, on_disk: bool) -> None:
    """Append records; blocks. With `on_disk` it returns once they would outlive the machine's fall.

    Raises:
        OSError: nothing was appended: the disk is full, the file is no regular one, a link, or may not be written.
    """
    text = b"".join(orjson.dumps(record) + b"\n" for record in records)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    opened = os.open(path, flags, 0o600)
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is no regular file")
        if status.st_size and os.pread(opened, 1, status.st_size - 1) != b"\n":
            text = b"\n" + text  # else the first record would be lost in what was cut off
        try:
            written = os.write(opened, text)
            if written < len(text):
                os.write(opened, text[written:])  # a disk that was full at the first part says so at the second
            if on_disk:
                os.fsync(opened)
                if status.st_size == 0:
                    sync_folder(path.parent)  # it may be new, and its name not on the disk yet
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(opened, status.st_size)
            raise
    finally:
        os.close(opened)


def sync_folder(folder: Path) -> None:
    """See the names of a folder on the disk; blocks.

    Raises:
        OSError: it could not be done.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def last_records(path: Path, most: int) -> list[dict[str, Any]]:
    """Return the last records of a file, oldest first; what is no record is passed over; blocks.

    Raises:
        OSError: it cannot be read, other than because it is not there yet.
    """
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(0, "it is no regular file")
        file.seek(max(0, os.fstat(opened).st_size - _TAIL_BYTES))
        lines = file.read().splitlines()
    found = []
    for line in lines[-most - 1 :]:  # one more, since the first may be cut
        with contextlib.suppress(orjson.JSONDecodeError):
            record = orjson.loads(line)
            if isinstance(record, dict) and record.get("schema") == AUDIT_SCHEMA and record.keys() >= _FIELDS:
                found.append(record)
    return found[-most:]
