"""A pool on its ladder that keeps every wait, every window and every step, and works all out from them when asked."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from llmshed.ladder.model import EntrySignal, Ladder, Rung
from llmshed.ladder.reading import PoolReading

if TYPE_CHECKING:
    from llmshed.ladder.standing import Hold


@dataclass
class PlainWindow:
    """All that one window saw; `turn` is "above", "calm" or "neither", once it ended."""

    started_at: float
    waits: list[float] = field(default_factory=list)
    offered: int = 0
    let_in: int = 0
    turn: str = ""
    seconds: float = 0.0
    lost: int = 0
    pressed: bool = False


class PlainLadder:
    """The rule, written down as it is told; nothing in it is fast or small."""

    def __init__(self, ladder: Ladder, objective_seconds: float, now: float) -> None:
        self.ladder = ladder
        self.objective = ladder.windows.objective_seconds or objective_seconds
        self.by_rule = 0
        self.held: Hold | None = None
        self.windows = [PlainWindow(now)]
        self.steps: list[tuple[str, int, bool]] = []  # climb or back, windows ended by then, whether from the ground
        self.row_from = 0  # index of the first window that counts in a row
        self.rates_from = 0
        self.ended = 0

    @property
    def current(self) -> PlainWindow:
        return self.windows[-1]

    def in_force(self) -> list[str]:
        held = self.ladder.rung_number(self.held.rung) or 0 if self.held else 0
        return [rung.name for rung in self.ladder.rungs[: max(self.by_rule, held)]]

    def row(self, turn: str) -> int:
        """Return for how many windows it has been so, the last one backwards."""
        count = 0
        for window in reversed(self.windows[self.row_from : -1]):
            if window.turn != turn:
                break
            count += 1
        return count

    def exit_windows(self) -> int:
        """Return what the next step back takes, by all steps that there were."""
        if self.by_rule == 0:
            return 0
        early, settings = 0, self.ladder.windows
        back_at: int | None = None
        for kind, ended, from_ground in self.steps:
            if kind == "back":
                back_at = ended
            elif back_at is not None:
                if ended - back_at <= settings.reentry_windows:
                    early += 1
                elif from_ground:
                    early = 0
                back_at = None
        return min(self.ladder.rungs[self.by_rule - 1].exit.windows << early, settings.most_exit_windows)

    def service(self, lost: int) -> float | None:
        seen = [one for one in self.windows[self.rates_from : -1] if one.pressed][-8:]
        rates = [one.let_in / one.seconds for one in seen if one.lost <= lost]
        return sum(rates) / len(rates) if rates else None

    def end_window(self, now: float, seen: PoolReading) -> None:
        """End the window and make the move that it leads to."""
        window = self.current
        window.waits += seen.waiting_ages_seconds
        window.seconds, window.lost = now - window.started_at, seen.replicas_lost
        changed = {"drop_enrichment", "shrink_context", "cap_output", "disable_thinking", "smaller_model"}
        degraded = [rung for rung in self.ladder.rungs if rung.name in self.in_force() and rung.action in changed]
        window.pressed = not degraded and self.beyond(window, seen, self.objective)
        window.turn = self.turn(window, seen)
        self.windows.append(PlainWindow(now))
        self.ended += 1
        self.move(window, seen)

    def move(self, window: PlainWindow, seen: PoolReading) -> None:
        if window.turn == "above" and self.row("above") >= self.ladder.rungs[self.by_rule].entry.windows:
            self.step("climb", 1)
        elif window.turn == "calm" and self.row("calm") >= self.exit_windows():
            service = self.service(seen.replicas_lost)
            if not self.ladder.windows.descend_needs_room or service is None:
                self.step("back", -1)
            elif self.row("calm") >= 2 * self.ladder.windows.most_exit_windows:
                self.rates_from = len(self.windows) - 1
                self.step("back", -1)
            elif window.offered / window.seconds <= service:
                self.step("back", -1)

    def step(self, kind: str, by: int) -> None:
        self.steps.append((kind, self.ended, self.by_rule == 0))
        self.by_rule += by
        self.row_from = len(self.windows) - 1

    def turn(self, window: PlainWindow, seen: PoolReading) -> str:
        following = self.ladder.rungs[self.by_rule] if self.by_rule < len(self.ladder.rungs) else None
        if following is not None and self.entered(following, window, seen):
            return "above"
        return "calm" if self.by_rule and self.left(self.ladder.rungs[self.by_rule - 1], window, seen) else "neither"

    def entered(self, rung: Rung, window: PlainWindow, seen: PoolReading) -> bool:
        bound = self.bound(rung)
        if rung.entry.signal is EntrySignal.QUEUE_DELAY:
            return self.beyond(window, seen, bound)
        value = self.look(rung, seen)
        return value is not None and value > bound

    def left(self, rung: Rung, window: PlainWindow, seen: PoolReading) -> bool:
        value = self.look(rung, seen)
        if value is not None:
            return value < self.bound(rung) * rung.exit.below_ratio
        bound = self.bound(rung) if rung.entry.signal is EntrySignal.QUEUE_DELAY else self.objective
        return not self.says_something(window, seen, bound) or percentile(window) < bound * rung.exit.below_ratio

    def beyond(self, window: PlainWindow, seen: PoolReading, bound: float) -> bool:
        return self.says_something(window, seen, bound) and percentile(window) > bound

    def says_something(self, window: PlainWindow, seen: PoolReading, bound: float) -> bool:
        waits_too_long = any(age > bound for age in seen.waiting_ages_seconds)
        return len(window.waits) >= self.ladder.windows.sample_minimum or waits_too_long

    def bound(self, rung: Rung) -> float:
        return self.objective if rung.entry.above is None else rung.entry.above

    def look(self, rung: Rung, seen: PoolReading) -> float | None:
        readings = {
            EntrySignal.KV_USED: seen.kv_used_ratio,
            EntrySignal.REPLICAS_LOST: seen.replicas_lost,
            EntrySignal.QUEUED_PREFILL: seen.queued_prefill_tokens,
            EntrySignal.OLDEST_AGE: max(seen.waiting_ages_seconds, default=0.0),
            EntrySignal.PREEMPTIONS: seen.preemptions_over_budget,
        }
        return readings.get(rung.entry.signal)

    def renew(self, ladder: Ladder, now: float) -> None:
        """Put another ladder in force: the highest rung climbed whose name is there, rows and steps forgotten."""
        if ladder == self.ladder:
            return
        names = [rung.name for rung in ladder.rungs]
        kept = [rung.name for rung in self.ladder.rungs[: self.by_rule] if rung.name in names]
        self.by_rule = names.index(kept[-1]) + 1 if kept else 0
        if self.held is not None and self.held.rung not in names:
            self.held = None
        self.ladder, self.objective = ladder, ladder.windows.objective_seconds or self.objective
        self.steps = []
        self.windows[-1] = PlainWindow(now)
        self.row_from = len(self.windows) - 1


def percentile(window: PlainWindow) -> float:
    """Return the 95th percentile of a window's waits, by nearest rank; less than anything where there are none."""
    return sorted(window.waits)[math.ceil(0.95 * len(window.waits)) - 1] if window.waits else -math.inf
