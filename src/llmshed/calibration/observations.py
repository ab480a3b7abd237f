"""Who was late at which level, counted so that a knee and its confidence interval follow.

Levels are binned by 1 %, time by blocks. Requests of one block share the composition of what ran beside them, so they
are no independent witnesses: the interval is that of a bootstrap over whole blocks (Kuensch, 1989).
"""

from dataclasses import dataclass, field
from math import floor, log
from typing import TYPE_CHECKING

from llmshed.calibration.isotonic import crossing

if TYPE_CHECKING:
    from random import Random

BIN_RATIO = 1.01
BLOCK_SECONDS = 16.0
RESAMPLES = 200
MARGIN_RATIO = 0.97
"""The lower bound is at most this part of the best estimate, however narrow the bootstrap's interval: spells that
outlast a run are in no resample, and levels are told apart by 1 %."""
BELOW_ALL = 0.97
"""Where all levels broke, the knee is looked for at this part of the lowest."""
CONFIDENCE = 0.95
"""One-sided, of either bound."""

Counts = dict[int, tuple[int, int]]
"""Observed and late, by the bin of the level."""


@dataclass(frozen=True, slots=True)
class Knee:
    """Where an objective breaks, in the unit of the level.

    Args:
        low: lower confidence bound; 0 while no level near the knee held.
        point: best estimate.
        high: upper confidence bound; None while no level broke.
    """

    low: float
    point: float
    high: float | None


@dataclass(slots=True)
class Observations:
    """All that was seen of one objective in one sweep: `total` to be shown, `blocks` near the knee to estimate from."""

    blocks: dict[int, Counts] = field(default_factory=dict)
    total: Counts = field(default_factory=dict)

    def add(self, at: float, level: float, *, late: bool, near_knee: bool) -> None:
        """Count one request that met `level` (above 0) and was known at `at`.

        What is not near the knee takes no part in the estimate: far below it a few late requests of a small number
        would say that the knee is there.
        """
        place = floor(log(level) / log(BIN_RATIO))
        for counts in (self.total, *([self.blocks.setdefault(floor(at / BLOCK_SECONDS), {})] if near_knee else [])):
            seen, lates = counts.get(place, (0, 0))
            counts[place] = (seen + 1, lates + late)

    def near(self, level: float) -> tuple[int, int]:
        """Return how many were observed within 1 % to 2 % of a level, and how many of them were late."""
        middle = floor(log(level) / log(BIN_RATIO))
        found = [self.total.get(place, (0, 0)) for place in (middle - 1, middle, middle + 1)]
        return sum(seen for seen, _ in found), sum(late for _, late in found)

    def knee(self, allowed_ratio: float, rng: "Random") -> Knee | None:
        """Return the level beyond which more than the allowed share is late; None when nothing was seen near it."""
        blocks = list(self.blocks.values())
        if not blocks:
            return None
        rows = _rows(blocks)
        point, broke = crossing(rows, allowed_ratio)
        resampled = (_rows([blocks[floor(rng.random() * len(blocks))] for _ in blocks]) for _ in range(RESAMPLES))
        found = sorted(_below_if_none(crossing(one, allowed_ratio), one[0][0]) for one in resampled)
        low = found[floor((1 - CONFIDENCE) * RESAMPLES)][0]
        high, high_broke = found[floor(CONFIDENCE * RESAMPLES)]
        if not point:
            return Knee(0.0, BELOW_ALL * rows[0][0], rows[0][0])
        return Knee(min(low, MARGIN_RATIO * point), point, max(high, point) if broke and high_broke else None)

    def crossing(self, allowed_ratio: float) -> float:
        """Return the level up to which the allowed share is late by all that was seen, at rough levels too; 0: none."""
        rows = self.levels()
        return crossing(rows, allowed_ratio)[0] if rows else 0.0

    def levels(self) -> list[tuple[float, int, int]]:
        """Return each level that was met, by the middle of its bin, with how many were observed and late."""
        return _rows([self.total])


def _below_if_none(found: tuple[float, bool], lowest: float) -> tuple[float, bool]:
    """Return a crossing, and where no level kept the bound a level below all."""
    return found if found[0] else (BELOW_ALL * lowest, True)


def _rows(blocks: list[Counts]) -> list[tuple[float, int, int]]:
    pooled: Counts = {}
    for counts in blocks:
        for place, (seen, late) in counts.items():
            before = pooled.get(place, (0, 0))
            pooled[place] = (before[0] + seen, before[1] + late)
    return [(BIN_RATIO ** (place + 0.5), *pooled[place]) for place in sorted(pooled)]
