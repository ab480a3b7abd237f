"""What reached a simulated replica and what came of it, as lines of JSON.

A schedule of schema `llmshed.schedule/1` is a header with the parameters, then in the order in which they happened one
line for each call that changes the model (`call`) and one for each result (`result`), then a line that closes it. A
call tells the reading of the clock under which the model was asked; since the course follows from the calls and their
times alone, they are enough to have it once more.
"""

from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any

import orjson

from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import (
    ChunkQueued,
    Dropped,
    Ended,
    Failed,
    FirstToken,
    Preempted,
    Result,
    StepsEnded,
)
from llmshed.simulation.sequences import Sequence

SCHEMA = "llmshed.schedule/1"
ENGINE = "tgi"
HASH_BITS = 53
"""Width of a hashed id: what every reader of JSON takes for a whole number."""


@dataclass(frozen=True, slots=True)
class TakePermit:
    """`take_permit`, and whether one was free."""

    key: int
    granted: bool


@dataclass(frozen=True, slots=True)
class Submit:
    """`submit`, and whether the sequence keeps all limits."""

    sequence: Sequence
    accepted: bool


@dataclass(frozen=True, slots=True)
class Leave:
    """`leave`."""

    key: int


@dataclass(frozen=True, slots=True)
class FailStep:
    """`fail_step`."""

    message: str


@dataclass(frozen=True, slots=True)
class Stall:
    """`stall`; without an end when `seconds` is None."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class Resume:
    """`resume`."""


@dataclass(frozen=True, slots=True)
class Close:
    """The end of the recording: nothing was looked at any more."""


Call = TakePermit | Submit | Leave | FailStep | Stall | Resume | Close


@dataclass(frozen=True, slots=True)
class Called:
    """A call and the reading of the clock, in seconds, up to which the model had been advanced."""

    at: float
    call: Call


CALLS: dict[str, type[Call]] = {
    "take_permit": TakePermit,
    "submit": Submit,
    "leave": Leave,
    "fail": FailStep,
    "stall": Stall,
    "resume": Resume,
    "close": Close,
}
"""The calls by the name that a line gives them."""
RESULTS: dict[str, type[Result]] = {
    "first_token": FirstToken,
    "steps_ended": StepsEnded,
    "chunk_queued": ChunkQueued,
    "preempted": Preempted,
    "ended": Ended,
    "dropped": Dropped,
    "failed": Failed,
}
"""The results by the name that a line gives them."""
_NAMES = {kind: name for name, kind in (*CALLS.items(), *RESULTS.items())}


def header_line(parameters: ReplicaParameters) -> bytes:
    """Return the first line of a schedule."""
    return _line({"schema": SCHEMA, "engine": ENGINE, "parameters": _given(parameters)})


def entry_line(entry: Called | Result) -> bytes:
    """Return the line of one call or result."""
    if isinstance(entry, Called):
        return _line({"at": entry.at, "call": _NAMES[type(entry.call)], **_given(entry.call)})
    return _line({"result": _NAMES[type(entry)], **_given(entry)})


def hashed(prompt: PromptBlocks, secret: bytes) -> PromptBlocks:
    """Return a prompt's ids such that prompts still share what they shared, and nobody can read them.

    Each id becomes a keyed hash of itself and all before it, so that not even equal tokens within a prompt can be
    counted.

    Args:
        prompt: the ids.
        secret: at most 64 bytes, the same for all prompts of a schedule and kept nowhere.
    """
    digest = b""
    ids = []
    for number in prompt.ids:
        digest = blake2b(digest + str(number).encode(), digest_size=16, key=secret).digest()
        ids.append(int.from_bytes(digest[:8]) >> (64 - HASH_BITS))
    return PromptBlocks(tuple(ids), prompt.unit_tokens)


def _given(value: Any) -> dict[str, Any]:
    """Return the fields that a dataclass is built from."""
    return {field.name: getattr(value, field.name) for field in fields(value) if field.init}


def _line(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
