"""What is in force on a pool, by which rule or whom, and what changed it."""

from dataclasses import dataclass
from enum import StrEnum

from llmshed.ladder.model import Rung


class Cause(StrEnum):
    """Why the rung in force, or the one by rule, changed; the value is a metric's label."""

    CLIMBED = "climbed"
    """The rung's entry was met for as many windows as it asks for."""
    DESCENDED = "descended"
    """The rung's exit was met, with room."""
    HELD = "held"
    """A person holds a rung."""
    RELEASED = "released"
    """A person gave a held rung up."""
    EXPIRED = "expired"
    """The time of a held rung was over."""
    RELOADED = "reloaded"
    """Another ladder, or none, was put in force."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A rung that a person holds on a pool.

    Args:
        rung: its name.
        until: clock reading at which it ends.
        reason: why, in the person's words.
    """

    rung: str
    until: float
    reason: str


@dataclass(frozen=True, slots=True)
class WindowSummary:
    """What one window showed.

    Args:
        ended_at: clock reading at its end.
        arrivals: interactive arrivals in it.
        signal_seconds: the queue delay signal; None with no arrival.
        objective_seconds: what it is held against.
        above: whether the entry of the next rung was met in it.
        calm: whether the exit of the rung in force by rule was met in it.
        offered_tokens_per_second: reserved tokens that first arrivals asked for, before anything was degraded.
        service_tokens_per_second: reserved tokens a second that were let in when it was last seen under pressure; None
            before that.
    """

    ended_at: float
    arrivals: int
    signal_seconds: float | None
    objective_seconds: float
    above: bool
    calm: bool
    offered_tokens_per_second: float
    service_tokens_per_second: float | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a pool stands on its ladder.

    Args:
        ladder: label of the ladder.
        by_rule: rung by rule alone, 0 for none.
        hold: what a person holds; None for nothing.
        in_force: rungs in force, first to last; the higher of both numbers says how many.
        above_windows: windows in a row above the next rung's entry, since the last step.
        calm_windows: windows in a row that were calm, since the last step.
        exit_windows: calm windows that a step back takes now; 0 on the ground.
        window: the last whole window; None before one ended.
    """

    ladder: str
    by_rule: int
    hold: Hold | None
    in_force: tuple[Rung, ...]
    above_windows: int
    calm_windows: int
    exit_windows: int
    window: WindowSummary | None = None

    @property
    def rung(self) -> int:
        """Return the number of the rung in force, 0 for none."""
        return len(self.in_force)


@dataclass(frozen=True, slots=True)
class Step:
    """A change of the rung in force on a pool, or of the one by rule beneath a held one.

    Args:
        pool: its name.
        before: number of the rung in force before, 0 for none.
        after: the same after it; equal where a higher rung hides what changed.
        cause: why.
        standing: where the pool stands after it.
    """

    pool: str
    before: int
    after: int
    cause: Cause
    standing: Standing
