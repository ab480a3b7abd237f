"""The whole diagnosis: the order of departures, the steps, the cause, and the one thing to change."""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from llmshed.diagnosis.causes import Cause, Suspicion, not_looked_at, suspicions
from llmshed.diagnosis.changes import CHANGES, Change
from llmshed.diagnosis.departure import Departure
from llmshed.diagnosis.facts import Facts
from llmshed.diagnosis.signals import SIGNALS, Signal
from llmshed.diagnosis.steps import StepResult, counting_is_right, latency_against_bulk, refusals_come_first, replay_it
from llmshed.diagnosis.track import Track

SURE_WEIGHT = 0.85
LIKELY_WEIGHT = 0.6
TIE_RATIO = 0.9
"""Of the heaviest cause's weight: one that has as much is told beside it, with its share."""


class Finding(StrEnum):
    """What was found, all in all."""

    HEALTHY = "healthy"
    WARNING = "warning"
    OVERLOAD = "overload"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How sure a cause is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Reading(NamedTuple):
    """One signal in the order: as it is now and was before, and when it departed; None where unknown or never.

    `track` holds baseline and window together.
    """

    signal: Signal
    track: Track | None
    value: float | None
    baseline: float | None
    departure: Departure | None
    unread: str | None


class Named(NamedTuple):
    """A cause that is named: its share of the weight of all that are, from 0 to 1, and how sure it is."""

    suspicion: Suspicion
    share: float
    confidence: Confidence


class Diagnosis(NamedTuple):
    """What came of it.

    Args:
        finding: all in all.
        began: when the trouble began, in seconds since the epoch; None without any.
        readings: the signals in the order in which an overload occurs.
        steps: the steps that were done.
        named: one cause, two that nothing tells apart, or none.
        change: the one thing to change; None where no cause is named.
        unseen: causes that could not be looked at for want of data.
        warnings: what is wrong beside any cause, as sentences.
    """

    finding: Finding
    began: float | None
    readings: tuple[Reading, ...]
    steps: tuple[StepResult, ...]
    named: tuple[Named, ...]
    change: Change | None
    unseen: tuple[Cause, ...]
    warnings: tuple[str, ...] = ()


def diagnose(facts: Facts, draw: Callable[[int], int]) -> Diagnosis:
    """Diagnose what the facts tell.

    Args:
        facts: what was read.
        draw: returns a whole number from 0 to below its argument; the same draws give the same diagnosis.
    """
    finding = _finding(facts)
    third, _ = latency_against_bulk(facts, draw)
    steps = (counting_is_right(facts), refusals_come_first(facts), third, replay_it())
    named = _named(suspicions(facts)) if finding is Finding.OVERLOAD else ()
    return Diagnosis(
        finding=finding,
        began=facts.began,
        readings=tuple(_reading(signal, facts) for signal in SIGNALS),
        steps=steps,
        named=named,
        change=CHANGES[named[0].suspicion.cause] if named else None,
        unseen=not_looked_at(facts),
        warnings=_warnings(facts),
    )


def _finding(facts: Facts) -> Finding:
    if facts.in_trouble is None:
        return Finding.UNKNOWN
    if facts.is_overloaded:
        return Finding.OVERLOAD
    direct = any(one.cause in _WARNED_OF for one in suspicions(facts))
    return Finding.WARNING if facts.steps_in_trouble or direct else Finding.HEALTHY


def _warnings(facts: Facts) -> tuple[str, ...]:
    """Tell of ladders that nobody should rely on: what they fall back to may have become worse since it was agreed."""
    stale = facts.highest("stale_rungs")
    if not stale:
        return ()
    return (f"Rungs whose evaluation no longer holds: {stale:.0f}; `llmshed ladder status` names them and says why.",)


_WARNED_OF = frozenset({Cause.REPLICA_LOSS, Cause.DRIFTED_PROFILE, Cause.STALL})
"""Causes that are told of though nobody suffers yet."""


def _named(suspected: tuple[Suspicion, ...]) -> tuple[Named, ...]:
    """Name the heaviest, and the next one where nothing tells the two apart."""
    tied = [one for one in suspected if one.weight >= TIE_RATIO * suspected[0].weight][:2]
    whole = sum(one.weight for one in tied)
    return tuple(Named(one, one.weight / whole, _confidence(one, alone=len(tied) == 1)) for one in tied)


def _confidence(one: Suspicion, *, alone: bool) -> Confidence:
    if one.weight >= SURE_WEIGHT and alone and not one.unknown:
        return Confidence.HIGH
    return Confidence.MEDIUM if one.weight >= LIKELY_WEIGHT else Confidence.LOW


def _reading(signal: Signal, facts: Facts) -> Reading:
    return Reading(
        signal,
        facts.tracks.get(signal.name),
        facts.during(signal.name),
        facts.before(signal.name),
        facts.departure(signal.name),
        facts.unread.get(signal.name),
    )
