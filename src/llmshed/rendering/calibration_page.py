"""A calibration as one page: what the replica carries, and for each sweep the levels that show why."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from llmshed.rendering.figures import count, share
from llmshed.rendering.page import Figure, Page, Section, Table
from llmshed.rendering.plots import Caption, curve

_MOST_BARS = 40
"""Levels that a table shows one by one; the drawing has them all."""


@dataclass(frozen=True, slots=True)
class LevelsSeen:
    """What was seen of one objective.

    Args:
        objective: its name, as in `TTFT`.
        levels: for each level, requests that were judged and those that broke the objective, ascending.
    """

    objective: str
    levels: tuple[tuple[float, int, int], ...]


@dataclass(frozen=True, slots=True)
class SweepFigures:
    """What one sweep found.

    Args:
        name: what was raised, as a heading.
        unit: of its levels.
        seen: by objective.
        low: lower confidence bound of the knee; None when none was found.
        point: its best estimate; None when none was found.
        high: its upper confidence bound; None while no level broke.
        allowed_ratio: share of requests that may break an objective.
    """

    name: str
    unit: str
    seen: tuple[LevelsSeen, ...]
    low: float | None
    point: float | None
    high: float | None
    allowed_ratio: float


@dataclass(frozen=True, slots=True)
class CalibrationFigures:
    """All that a page tells.

    Args:
        summary: the result in a few sentences.
        facts: what was measured, by name.
        warnings: what a reader should know before believing it, one sentence each.
        proposed: the figures of the profile, by name; empty when there is none.
        sweeps: in the order in which they were made.
        counts: requests by how they ended.
    """

    summary: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    proposed: tuple[tuple[str, str], ...]
    sweeps: tuple[SweepFigures, ...]
    counts: Mapping[str, int]


def calibration_page(figures: CalibrationFigures, version: str, *, drawn: bool = True) -> Page:
    """Return the page; `version` is llmshed's own, `drawn` False leaves the drawings out.

    Raises:
        MissingPlotsError: drawings are wanted and matplotlib is not installed.
    """
    sections = [Section("Before you believe it", figures.warnings)] if figures.warnings else []
    if figures.proposed:
        proposed = Table("What the profile says", ("figure", "value"), figures.proposed)
        sections.append(Section("The profile", tables=(proposed,)))
    for place, sweep in enumerate(figures.sweeps):
        drawings = tuple(_drawings(sweep, place)) if drawn else ()
        tables = tuple(_table(sweep, seen) for seen in sweep.seen if seen.levels)
        sections.append(Section(sweep.name, (_knee_told(sweep),), drawings, tables))
    ends = Table(
        "Requests", ("how they ended", "requests"), tuple((name, f"{n:,}") for name, n in figures.counts.items())
    )
    sections.append(Section("What was sent", tables=(ends,)))
    return Page("Calibration", figures.summary, figures.facts, tuple(sections), f"llmshed {version}")


def _knee_told(sweep: SweepFigures) -> str:
    if sweep.low is None or sweep.point is None:
        return "No level broke an objective, or too little was seen: no knee is known."
    above = "no level broke, so there is no upper bound" if sweep.high is None else f"at most {count(sweep.high)}"
    return f"The knee is about {count(sweep.point)} {sweep.unit}: at least {count(sweep.low)}, {above}."


def _drawings(sweep: SweepFigures, place: int) -> Iterator[Figure]:
    """Draw the share that broke an objective against the level, with the knee as a line."""
    series: dict[str, list[tuple[float, float]]] = {}
    for seen in sweep.seen:
        if seen.levels:
            series[f"{seen.objective} broken"] = [(level, 100 * late / n) for level, n, late in seen.levels if n]
    if not series:
        return
    series["allowed"] = [(level, 100 * sweep.allowed_ratio) for level in _ends(sweep)]
    if sweep.low is not None and sweep.point is not None:
        series["knee"] = [(sweep.point, 0.0), (sweep.point, 100.0)]
        series["lower bound"] = [(sweep.low, 0.0), (sweep.low, 100.0)]
    caption = Caption(f"sweep-{_letters(place)}", sweep.name, _knee_told(sweep), sweep.unit, "% of requests")
    yield Figure(curve(caption, series, y_most=105), "Share of requests that broke an objective, by the level held.")


def _ends(sweep: SweepFigures) -> tuple[float, float]:
    levels = [level for seen in sweep.seen for level, _, _ in seen.levels]
    return min(levels), max(levels)


def _letters(place: int) -> str:
    """Return a name for a drawing; those of a page have letters only."""
    return "abcdefghij"[place % 10]


def _table(sweep: SweepFigures, seen: LevelsSeen) -> Table:
    shown = seen.levels[:: max(1, -(-len(seen.levels) // _MOST_BARS))]
    rows = tuple((count(level), f"{n:,}", f"{late:,}", share(late / n if n else None)) for level, n, late in shown)
    left_out = len(seen.levels) - len(shown)
    note = f"{left_out} levels between these are left out." if left_out else ""
    return Table(f"{seen.objective}, by {sweep.unit}", ("level", "requests", "broken", "share"), rows, note)
