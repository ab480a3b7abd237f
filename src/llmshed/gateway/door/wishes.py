"""What a client wishes by header: intent, class, session, deadlines; it may only ask for less than its key allows."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from multidict import CIMultiDictProxy

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, PriorityClass
from llmshed.engines.base import BodyError, Call

DEGRADE_HEADER = "x-llmshed-degrade"
_MOST_SESSION_CHARACTERS = 512
_MOST_DEADLINE_DIGITS = 12
_GRPC_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
_GRPC_UNIT_SECONDS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_DECIMAL_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,18})?")
"""A read timeout as Python writes a number; `NOT_GIVEN` and `None` are what SDKs send of one that nobody set."""
_Word = TypeVar("_Word", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Wishes:
    """The declared wishes of one request; all times count from its arrival.

    Args:
        intent: what it is for; None when nothing was said.
        priority_class: its class; None likewise.
        session: the conversation that it belongs to; None likewise.
        deadline_seconds: after which the whole answer is useless; None without such a time.
        first_token_seconds: after which an answer that has not begun is useless; None likewise, and for an answer that
            is not streamed, which begins with its end.
        silence_seconds: after which its client leaves if it has heard nothing; None where it does not say.
        declines_degrading: whether it would rather be refused than be answered otherwise than it asked.
    """

    intent: Intent | None = None
    priority_class: PriorityClass | None = None
    session: str | None = None
    deadline_seconds: float | None = None
    first_token_seconds: float | None = None
    silence_seconds: float | None = None
    declines_degrading: bool = False


def read_wishes(headers: CIMultiDictProxy[str], call: Call) -> Wishes:
    """Read the headers, and the body's own words where a header is silent.

    Raises:
        BodyError: one of our own headers has no meaning or two; a foreign header that cannot be read is ignored.
    """
    intent = _word(headers, "x-llmshed-intent", Intent)
    if intent is None and call.declared_intent is not None:
        intent = read_word("metadata.llmshed_intent", call.declared_intent, Intent)
    session = _single(headers, "x-llmshed-session")
    if session is not None and not 0 < len(session) <= _MOST_SESSION_CHARACTERS:
        raise BodyError(
            Reason.MALFORMED,
            f"x-llmshed-session: must have 1 to {_MOST_SESSION_CHARACTERS} characters",
            "x-llmshed-session",
        )
    whole, beginning = read_deadlines(headers)
    if not call.streamed and beginning is not None:
        whole, beginning = min(beginning, whole or beginning), None
    return Wishes(
        intent=intent,
        priority_class=_word(headers, "x-llmshed-class", PriorityClass),
        session=session or call.session_hint,
        deadline_seconds=whole,
        first_token_seconds=beginning,
        silence_seconds=_decimal_seconds(headers.get("x-stainless-read-timeout", "")) or None,
        declines_degrading=_declines(headers),
    )


def _declines(headers: CIMultiDictProxy[str]) -> bool:
    """Say whether degraded answers are declined; only a clear `no` is, since a misread wish would cost an answer."""
    said = _single(headers, DEGRADE_HEADER)
    if said not in {None, "no"}:
        raise BodyError(Reason.MALFORMED, f"{DEGRADE_HEADER}: must be no", DEGRADE_HEADER)
    return said is not None


def read_deadlines(headers: CIMultiDictProxy[str]) -> tuple[float | None, float | None]:
    """Return the deadlines of the whole answer and of its beginning, in seconds from arrival; None where none is named.

    Of each kind the smallest holds. For the whole answer `x-llmshed-deadline-ms`, `x-envoy-expected-rq-timeout-ms` and
    `grpc-timeout` are read, for its beginning `x-slo-ttft-ms`. Zero in a foreign header means "no limit" to those who
    send it. `x-stainless-read-timeout` is none of them: SDKs send their default in it, which nobody wished.

    Raises:
        BodyError: `x-llmshed-deadline-ms` is not a whole number of milliseconds, at least 1.
    """
    whole = (
        _own_deadline(headers),
        _milliseconds(headers.get("x-envoy-expected-rq-timeout-ms", "")),
        _grpc_timeout(headers.get("grpc-timeout", "")),
    )
    beginning = _milliseconds(headers.get("x-slo-ttft-ms", ""))
    return min(filter(None, whole), default=None), beginning or None


def _own_deadline(headers: CIMultiDictProxy[str]) -> float | None:
    own = _single(headers, "x-llmshed-deadline-ms")
    seconds = None if own is None else _milliseconds(own)
    if own is not None and not seconds:
        raise BodyError(
            Reason.MALFORMED,
            "x-llmshed-deadline-ms: must be a whole number of milliseconds from now, at least 1",
            "x-llmshed-deadline-ms",
        )
    return seconds


def _milliseconds(text: str) -> float | None:
    """Return whole milliseconds in seconds; None for anything else."""
    text = text.strip()
    readable = text.isascii() and text.isdigit() and len(text) <= _MOST_DEADLINE_DIGITS
    return int(text) / 1000 if readable else None


def _grpc_timeout(text: str) -> float | None:
    found = _GRPC_TIMEOUT.fullmatch(text)
    return None if found is None else int(found[1]) * _GRPC_UNIT_SECONDS[found[2]]


def _decimal_seconds(text: str) -> float | None:
    return float(text) if _DECIMAL_SECONDS.fullmatch(text) else None


def _word(headers: CIMultiDictProxy[str], name: str, words: type[_Word]) -> _Word | None:
    value = _single(headers, name)
    return None if value is None else read_word(name, value, words)


def read_word(name: str, value: Any, words: type[_Word]) -> _Word:
    """Return the word of an enumeration that a client wrote.

    Raises:
        BodyError: it is none of them; the text names what is accepted.
    """
    try:
        return words(value)
    except ValueError:
        accepted = ", ".join(words)
        raise BodyError(Reason.MALFORMED, f"{name}: must be one of {accepted}", name) from None


def _single(headers: CIMultiDictProxy[str], name: str) -> str | None:
    values = headers.getall(name, None)
    if values is None:
        return None
    if len(set(values)) > 1:
        raise BodyError(Reason.MALFORMED, f"{name}: sent more than once with different values", name)
    return values[0].strip()
