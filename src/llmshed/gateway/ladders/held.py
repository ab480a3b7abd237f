"""The rungs that people hold, in a file that outlives the process: whole at any time, written by its owner alone."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from llmshed.errors import LadderError
from llmshed.gateway.ladders.audit import sync_folder

STATE_SCHEMA: Final = "llmshed.ladder_state/1"
_MOST_BYTES: Final = 1_048_576


class HeldRung(BaseModel):
    """A rung that is held on a pool, by the wall clock, which goes on while no process runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    pool: str
    rung: str
    until: float
    """Wall clock at which it ends, seconds since the epoch."""
    for_seconds: Annotated[float, Field(gt=0)]
    """How long it was to be held."""
    reason: str
    who: str

    def remaining_seconds(self, wall: float) -> float:
        """Return how long it is still held; a clock that was set back does not make it longer than it was meant."""
        return min(self.until - wall, self.for_seconds)


class _State(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    schema_: Annotated[Literal["llmshed.ladder_state/1"], Field(alias="schema")]
    holds: list[HeldRung]


def read_held(path: Path) -> dict[str, HeldRung]:
    """Return what is held, by pool; nothing where there is no file yet; blocks.

    Raises:
        LadderError: the file cannot be read, is of another form, or others may write it.
    """
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise LadderError(f"ladder.state_file: {path}: cannot be read: {error.strerror}") from None
    with os.fdopen(opened, "rb") as file:
        mode = os.fstat(opened).st_mode
        if not stat.S_ISREG(mode) or mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise LadderError(f"ladder.state_file: {path}: must be a regular file that only its owner may write")
        try:
            state = _State.model_validate_json(file.read(_MOST_BYTES))
        except (OSError, ValidationError):
            raise LadderError(f"ladder.state_file: {path}: does not hold what this gateway wrote there") from None
    return {hold.pool: hold for hold in state.holds}


def write_held(path: Path, holds: Mapping[str, HeldRung]) -> None:
    """Put what is held in place of what was, and see it on the disk; blocks.

    Raises:
        OSError: it could not be written; the file is as it was, or in place and perhaps not on the disk.
    """
    state = {"schema": STATE_SCHEMA, "holds": [hold.model_dump() for hold in holds.values()]}
    text = orjson.dumps(state) + b"\n"
    beside = path.with_name(f".{path.name[:200]}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    try:
        opened = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(opened, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(opened)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(path.parent)
