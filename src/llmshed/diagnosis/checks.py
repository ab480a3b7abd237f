"""One thing that can be looked at, with the sentence that tells what was seen."""

from collections.abc import Callable
from typing import NamedTuple

from llmshed.diagnosis.facts import Facts
from llmshed.diagnosis.signals import SIGNALS, Unit

_BY_NAME = {signal.name: signal for signal in SIGNALS}


class Seen(NamedTuple):
    """What a look found: whether it holds, and in which words."""

    holds: bool
    sentence: str


Check = Callable[[Facts], Seen | None]
"""Looks at the facts; None where what it needs is not known."""


def shown(name: str, value: float) -> str:
    """Return a value of a signal as people read it."""
    match _BY_NAME[name].unit:
        case Unit.RATIO:
            return f"{100 * value:.0f} %"
        case Unit.SECONDS:
            return f"{value:.2f} s" if value >= 0.1 else f"{1000 * value:.0f} ms"
        case Unit.TOKENS | Unit.TOKENS_PER_SECOND as unit:
            return f"{value:,.0f} {unit}"
        case Unit.PER_SECOND as unit:
            return f"{value:.2g} {unit}" if value < 10 else f"{value:,.0f} {unit}"
        case Unit.NUMBER:
            return f"{value:.3g}"


def at_least(name: str, bound: float) -> Check:
    """Look whether a signal was at a bound or above in the trouble."""
    return _held(name, lambda value: value >= bound, f"at least {shown(name, bound)}")


def below(name: str, bound: float) -> Check:
    """Look whether a signal was below a bound in the trouble."""
    return _held(name, lambda value: value < bound, f"below {shown(name, bound)}")


def happened(name: str, bound: float) -> Check:
    """Look whether a signal was at a bound or above at any step of the window."""

    def look(facts: Facts) -> Seen | None:
        highest = facts.highest(name)
        if highest is None:
            return None
        return Seen(highest >= bound, f"{_words(name)}: {shown(name, highest)} at most")

    return look


def fell(name: str, by: float) -> Check:
    """Look whether a signal was lower at any step of the window than before, by so much at least."""

    def look(facts: Facts) -> Seen | None:
        before, lowest = facts.before(name), facts.lowest(name)
        if before is None or lowest is None:
            return None
        sentence = f"{_words(name)}: {shown(name, lowest)} at least, {shown(name, before)} before"
        return Seen(lowest <= before - by, sentence)

    return look


def grew(name: str, factor: float) -> Check:
    """Look whether a signal was so many times as high in the trouble as before, or more."""
    return _compared(name, lambda growth: growth >= factor)


def did_not_grow(name: str, factor: float) -> Check:
    """Look whether a signal was less than so many times as high in the trouble as before."""
    return _compared(name, lambda growth: growth < factor)


def moved(name: str, by: float) -> Check:
    """Look whether a signal stood elsewhere in the trouble than before, by so much at least, in whatever direction."""

    def look(facts: Facts) -> Seen | None:
        before, during = facts.before(name), facts.during(name)
        if before is None or during is None:
            return None
        return Seen(abs(during - before) >= by, f"{_words(name)}: {shown(name, during)}, {shown(name, before)} before")

    return look


def departed_first(name: str, other: str) -> Check:
    """Look whether a signal left its baseline no later than another one."""

    def look(facts: Facts) -> Seen | None:
        first, second = facts.departure(name), facts.departure(other)
        if first is None:
            return None
        step_seconds = facts.tracks[name].step_seconds
        if second is None:
            return Seen(holds=True, sentence=f"{_words(name)}: departed, {_words(other)} did not")
        seconds = second.at - first.at
        order = "before" if seconds >= 0 else "after"
        return Seen(seconds >= -step_seconds, f"{_words(name)}: departed {abs(seconds):.0f} s {order} {_words(other)}")

    return look


def both(first: Check, second: Check) -> Check:
    """Look whether two things hold together; None where either is not known."""

    def look(facts: Facts) -> Seen | None:
        one, other = first(facts), second(facts)
        if one is None or other is None:
            return None
        return Seen(one.holds and other.holds, f"{one.sentence}; {other.sentence}")

    return look


def either(*checks: Check) -> Check:
    """Look whether one of several things holds, and tell of the first that does; None where none is known."""

    def look(facts: Facts) -> Seen | None:
        seen = [one for check in checks if (one := check(facts)) is not None]
        return next((one for one in seen if one.holds), seen[0] if seen else None)

    return look


def _held(name: str, holds: Callable[[float], bool], bound: str) -> Check:
    def look(facts: Facts) -> Seen | None:
        during = facts.during(name)
        return None if during is None else Seen(holds(during), f"{_words(name)}: {shown(name, during)} ({bound} tells)")

    return look


def _compared(name: str, holds: Callable[[float], bool]) -> Check:
    def look(facts: Facts) -> Seen | None:
        growth, before, during = facts.growth(name), facts.before(name), facts.during(name)
        if growth is None or before is None or during is None:
            return None
        sentence = f"{_words(name)}: {shown(name, during)}, {growth:.2g} x the {shown(name, before)} before"
        return Seen(holds(growth), sentence)

    return look


def _words(name: str) -> str:
    return _BY_NAME[name].meaning
