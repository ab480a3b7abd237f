"""What a client wishes by header: intent, class, session and deadline; it may only ask for less than its key allows."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from multidict import CIMultiDictProxy

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, PriorityClass
from llmshed.engines.base import BodyError, Call

_MOST_SESSION_CHARACTERS = 512
_MOST_DEADLINE_DIGITS = 12
_GRPC_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
_GRPC_UNIT_SECONDS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_FOREIGN_MILLISECONDS = ("x-envoy-expected-rq-timeout-ms", "x-slo-ttft-ms")
_Word = TypeVar("_Word", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Wishes:
    """The declared wishes of one request; `deadline_seconds` counts from its arrival."""

    intent: Intent | None = None
    priority_class: PriorityClass | None = None
    session: str | None = None
    deadline_seconds: float | None = None


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
    return Wishes(
        intent=intent,
        priority_class=_word(headers, "x-llmshed-class", PriorityClass),
        session=session or call.session_hint,
        deadline_seconds=read_deadline(headers),
    )


def read_deadline(headers: CIMultiDictProxy[str]) -> float | None:
    """Return the smallest of the deadlines that the headers name, in seconds from arrival; None without any.

    Read are `x-llmshed-deadline-ms`, `x-envoy-expected-rq-timeout-ms`, `x-slo-ttft-ms` and `grpc-timeout`. Zero in a
    foreign header means "no limit" to those who send it.

    Raises:
        BodyError: `x-llmshed-deadline-ms` is not a whole number of milliseconds, at least 1.
    """
    found: list[float] = []
    own = _single(headers, "x-llmshed-deadline-ms")
    if own is not None:
        milliseconds = _milliseconds(own)
        if not milliseconds:
            raise BodyError(
                Reason.MALFORMED,
                "x-llmshed-deadline-ms: must be a whole number of milliseconds from now, at least 1",
                "x-llmshed-deadline-ms",
            )
        found.append(milliseconds / 1000)
    for name in _FOREIGN_MILLISECONDS:
        milliseconds = _milliseconds(headers.get(name, ""))
        if milliseconds:
            found.append(milliseconds / 1000)
    grpc = _GRPC_TIMEOUT.fullmatch(headers.get("grpc-timeout", ""))
    if grpc is not None and int(grpc[1]) > 0:
        found.append(int(grpc[1]) * _GRPC_UNIT_SECONDS[grpc[2]])
    return min(found, default=None)


def _milliseconds(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DEADLINE_DIGITS else None


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
    values = headers.getall(name, [])
    if len(set(values)) > 1:
        raise BodyError(Reason.MALFORMED, f"{name}: sent more than once with different values", name)
    return values[0].strip() if values else None
