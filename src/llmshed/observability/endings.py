"""How a request ended: the ending, and a two-letter code that says who ended it in which phase."""

from enum import StrEnum


class Ending(StrEnum):
    """The one ending that every request has."""

    FINISHED = "finished"
    """The engine ended the answer by itself."""
    REFUSED = "refused"
    """Answered without an engine, before it was queued."""
    EVICTED = "evicted"
    """Answered without an engine, after it was queued."""
    CANCELLED = "cancelled"
    """The client left."""
    FAILED = "failed"
    """The engine failed or fell silent, the request's own deadline passed, or the gateway gave up."""


class EndedBy(StrEnum):
    """First letter of a termination code: who ended the request."""

    NOBODY = "-"
    CLIENT = "C"
    GATEWAY = "G"
    UPSTREAM = "U"
    DEADLINE = "D"
    """The request's own deadline, which passed."""


class Phase(StrEnum):
    """Second letter of a termination code: what the request was in when it ended."""

    COMPLETE = "-"
    BODY = "B"
    AUTHENTICATION = "A"
    COUNTING = "T"
    QUEUE = "Q"
    SENDING = "S"
    PREFILL = "P"
    """Given to the engine, no token seen yet."""
    DECODE = "D"


def termination(ended_by: EndedBy, phase: Phase) -> str:
    """Return the two letters, such as `--` for a complete answer or `CD` for a client that left its stream."""
    return ended_by.value + phase.value
