"""One pool on its ladder: counts the windows, follows the table, and lays what a person holds over it."""

from collections.abc import Callable

from llmshed.ladder.damping import Damping
from llmshed.ladder.judging import Judge
from llmshed.ladder.model import Ladder, Rung
from llmshed.ladder.rates import ServiceRate
from llmshed.ladder.reading import PoolReading
from llmshed.ladder.standing import Cause, Hold, Standing, Step, WindowSummary
from llmshed.ladder.table import TABLE, Move, Shown, place
from llmshed.ladder.windows import DelayWindow

_ROOM_PATIENCE = 2
"""Calm windows in a row, in units of the most that a step back takes, after which it needs no room: the rate seen under
pressure is of another time by then, as before replicas were added, and a pool at ease never shows another."""


class PoolLadder:
    """The ladder's state for one pool; every change of the rung in force, or by rule, comes out of it as a `Step`.

    Args:
        pool: its name.
        ladder: the agreed ladder.
        objective_seconds: queue delay objective of the pool; the ladder's own goes before it.
        now: clock reading at which its first window begins, in seconds.
    """

    __slots__ = (
        "_above", "_by_rule", "_calm", "_damping", "_ends_at", "_hold", "_in_force", "_judge", "_ladder", "_last",
        "_objective", "_pool", "_rate", "_window",
    )  # fmt: skip

    def __init__(self, pool: str, ladder: Ladder, objective_seconds: float, now: float) -> None:
        self._pool = pool
        self._ladder = ladder
        self._objective = ladder.windows.objective_seconds or objective_seconds
        self._by_rule = 0
        self._hold: Hold | None = None
        self._in_force: tuple[Rung, ...] = ()
        self._above = 0
        self._calm = 0
        self._damping = Damping()
        self._rate = ServiceRate()
        self._last: WindowSummary | None = None
        self._begin(now)

    @property
    def in_force(self) -> tuple[Rung, ...]:
        """Return the rungs in force, first to last."""
        return self._in_force

    def standing(self) -> Standing:
        """Return where the pool stands."""
        return Standing(
            ladder=self._ladder.label,
            by_rule=self._by_rule,
            hold=self._hold,
            in_force=self._in_force,
            above_windows=self._above,
            calm_windows=self._calm,
            exit_windows=self._exit_windows(),
            window=self._last,
        )

    def sample(self, seconds: float) -> None:
        """Count an interactive arrival by its residence as it leaves the queue, or its estimate at refusal.

        Args:
            seconds: >= 0; infinite for an estimate without an end.
        """
        self._window.sample(seconds)

    def offered(self, tokens: int) -> None:
        """Count the reserved tokens that a first arrival asked for, whatever became of it."""
        self._window.offered_tokens += tokens

    def let_in(self, tokens: int) -> None:
        """Count the reserved tokens of a dispatch."""
        self._window.let_in_tokens += tokens

    def hold(self, hold: Hold, now: float) -> Step | None:
        """Hold a rung in place of what was held; one whose time is over holds nothing.

        Raises:
            ValueError: the ladder has no such rung.
        """
        if self._ladder.rung_number(hold.rung) is None:
            raise ValueError(f"ladder {self._ladder.label} has no rung `{hold.rung}`")
        self._hold = hold if now < hold.until else None
        return self._settle(Cause.HELD)

    def release(self) -> Step | None:
        """Give up what is held; nothing happens where nothing is."""
        self._hold = None
        return self._settle(Cause.RELEASED)

    def renew(self, ladder: Ladder, objective_seconds: float, now: float) -> Step | None:
        """Put another version of the ladder, or another one, in force.

        The rung by rule and the held one are kept by their names: by rule the highest of those climbed that is still
        there, and a held one that is gone is no longer held. A ladder that says the same changes nothing; otherwise a
        new window begins, and rows and early re-entries are counted anew.

        Returns:
            The step, where the names of the rungs in force changed, even if their number did not. What a rung of the
            same name does may have changed without a step.
        """
        objective = ladder.windows.objective_seconds or objective_seconds
        if ladder == self._ladder and objective == self._objective:
            return None
        before, climbed = self._in_force, self._ladder.rungs[: self._by_rule]
        self._ladder, self._objective = ladder, objective
        self._by_rule = next((kept for rung in reversed(climbed) if (kept := ladder.rung_number(rung.name))), 0)
        if self._hold is not None and ladder.rung_number(self._hold.rung) is None:
            self._hold = None
        self._in_force = self._due_rungs()
        self._above = self._calm = 0
        self._damping = Damping()
        self._begin(now)
        if [rung.name for rung in before] == [rung.name for rung in self._in_force]:
            return None
        return Step(self._pool, len(before), len(self._in_force), Cause.RELOADED, self.standing())

    def back_in_seconds(self, number: int, now: float) -> float:
        """Return the least time until a rung that is in force, by its number, can be out of force; >= 0."""
        held = self._ladder.rung_number(self._hold.rung) or 0 if self._hold else 0
        seconds = self._hold.until - now if self._hold and held >= number else 0.0
        if number <= self._by_rule:
            lower = self._ladder.rungs[number - 1 : self._by_rule - 1]
            further = sum(self._damping.exit_windows(rung, self._ladder.windows) for rung in lower)
            further += max(self._exit_windows() - self._calm - 1, 0)
            seconds = max(seconds, self._ends_at - now + further * self._ladder.windows.window_seconds)
        return max(seconds, 0.0)

    def next_wakeup(self) -> float:
        """Return the clock reading at which the window or the hold ends."""
        return self._ends_at if self._hold is None else min(self._ends_at, self._hold.until)

    def advance(self, now: float, read: Callable[[], PoolReading]) -> list[Step]:
        """End the window and the hold if their time has come, and return the steps in their order.

        Args:
            now: clock reading in seconds.
            read: looks at the pool; asked when a window ends and not otherwise.
        """
        steps = [self._expire(min(now, self._ends_at))]
        if now >= self._ends_at:
            steps += [self._end_window(now, read()), self._expire(now)]
        return [step for step in steps if step is not None]

    def check(self) -> tuple[str, ...]:
        """Return the invariants that do not hold."""
        broken = list(self._window.check())
        if not 0 <= self._by_rule <= len(self._ladder.rungs):
            broken.append(f"rung {self._by_rule} of {len(self._ladder.rungs)}")
        if self._in_force != self._due_rungs():
            broken.append("what is in force is not the higher of the rung by rule and the held one")
        following = self._judge.following
        if self._above and (following is None or self._above >= following.entry.windows):
            broken.append(f"{self._above} windows above without a climb")
        if self._calm >= _ROOM_PATIENCE * self._ladder.windows.most_exit_windows:
            broken.append(f"{self._calm} calm windows without a step back")
        if self._calm and (self._above or not self._by_rule):
            broken.append("calm while above, or on the ground")
        return tuple(broken)

    def _begin(self, now: float) -> None:
        """Begin a window; its bounds hold to its end, since only the end of a window moves the rung by rule."""
        windows = self._ladder.windows
        self._judge = Judge(self._ladder, self._by_rule, self._objective)
        self._window = DelayWindow(self._judge.delay_bounds(), windows.sample_minimum, now)
        self._ends_at = now + windows.window_seconds

    def _exit_windows(self) -> int:
        if not self._by_rule:
            return 0
        return self._damping.exit_windows(self._ladder.rungs[self._by_rule - 1], self._ladder.windows)

    def _due_rungs(self) -> tuple[Rung, ...]:
        held = 0 if self._hold is None else self._ladder.rung_number(self._hold.rung) or 0
        return self._ladder.rungs[: max(self._by_rule, held)]

    def _settle(self, cause: Cause, *, by_itself: bool = False) -> Step | None:
        """Put in force what is due; what the ladder does by itself is told although a hold or the rule hides it."""
        before, self._in_force = len(self._in_force), self._due_rungs()
        after = len(self._in_force)
        return Step(self._pool, before, after, cause, self.standing()) if by_itself or before != after else None

    def _expire(self, by: float) -> Step | None:
        if self._hold is None or self._hold.until > by:
            return None
        self._hold = None
        return self._settle(Cause.EXPIRED, by_itself=True)

    def _end_window(self, now: float, reading: PoolReading) -> Step | None:
        """Judge the window, make the move and begin another; windows that nobody ended are not made up for."""
        self._last = self._summary(now, reading)
        self._damping.window_ended(self._ladder.windows, on_ground=not self._by_rule)
        cause = self._follow(TABLE[place(self._by_rule, len(self._ladder.rungs)), self._shown(self._last)].move)
        self._begin(now)
        return None if cause is None else self._settle(cause, by_itself=True)

    def _summary(self, now: float, reading: PoolReading) -> WindowSummary:
        window = self._window
        window.sample_waiting(reading.waiting_ages_seconds)
        elapsed_seconds = now - window.started_at
        # A lowered ceiling or a smaller model lets in other tokens than were asked for: those rates do not compare.
        if window.under_pressure() and not any(rung.action.changes_answers for rung in self._in_force):
            self._rate.saw(window.let_in_tokens / elapsed_seconds, reading.replicas_lost)
        above = self._judge.above(window, reading)
        return WindowSummary(
            ended_at=now,
            arrivals=window.arrivals,
            signal_seconds=window.signal_seconds(),
            objective_seconds=self._objective,
            above=above,
            calm=not above and self._judge.calm(window, reading),
            offered_tokens_per_second=window.offered_tokens / elapsed_seconds,
            service_tokens_per_second=self._rate.tokens_per_second(reading.replicas_lost),
        )

    def _shown(self, window: WindowSummary) -> Shown:
        following = self._judge.following
        if window.above and following is not None:
            return Shown.LONG_ABOVE if self._above + 1 >= following.entry.windows else Shown.ABOVE
        if not window.calm:
            return Shown.NEITHER
        if self._calm + 1 < self._exit_windows():
            return Shown.CALM
        return Shown.LONG_CALM if self._has_room(window) else Shown.CROWDED

    def _has_room(self, window: WindowSummary) -> bool:
        if not self._ladder.windows.descend_needs_room or window.service_tokens_per_second is None:
            return True
        if self._calm + 1 >= _ROOM_PATIENCE * self._ladder.windows.most_exit_windows:
            self._rate.forget()
            return True
        return window.offered_tokens_per_second <= window.service_tokens_per_second

    def _follow(self, move: Move) -> Cause | None:
        """Make a move; returns what the step by rule that it makes is called, None where it makes none."""
        above, calm = self._above, self._calm
        self._above = self._calm = 0
        match move:
            case Move.COUNT_ABOVE:
                self._above = above + 1
            case Move.COUNT_CALM:
                self._calm = calm + 1
            case Move.CLIMB:
                self._damping.climbed(self._ladder.windows)
                self._by_rule += 1
                return Cause.CLIMBED
            case Move.BACK:
                self._damping.went_back()
                self._by_rule -= 1
                return Cause.DESCENDED
            case Move.FORGET:
                pass
        return None
