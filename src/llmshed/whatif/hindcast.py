"""A run held against the log that its traffic comes from: would the model have foretold what happened?

The problem: a simulated replica that is not the operator's own answers every question, and wrongly. So the traffic of a
decision log first meets the configuration that it met in truth, and the run is compared with the log, lane by lane. A
difference is relative, |simulated - logged| / logged, and the largest one counts. While that is above
`MOST_DIFFERENCE` nothing is proposed.

A log lacks the lengths of what was refused, and who is refused hangs on single lengths, so two runs with other draws of
them differ as two days do. The mean over several draws is what the model foretells.

Two rules keep small numbers from deciding. A share below 10 % is held against 10 %: at none refused in truth, 1.5 % in
the run are the most. And what a lane has seen fewer than `LEAST_SEEN` times is told and not judged.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from statistics import fmean
from typing import Any

from llmshed.admission.request import Lane
from llmshed.whatif.logged_figures import LaneFigures, LoggedFigures

MOST_DIFFERENCE = 0.15
LEAST_SHARE = 0.1
LEAST_SEEN = 50
"""Tries of a lane, or first tokens for its TTFT. The 95th percentile of 50 is their third greatest."""
NOTHING = LaneFigures(0, 0.0, 0, None, 0.0)
"""What a lane that one side has not is compared with."""


class HindcastMeasure(StrEnum):
    """What is compared in each lane."""

    REFUSED_SHARE = "refused_share"
    TTFT_P95 = "ttft_p95_seconds"
    OUTPUT_RATE = "output_tokens_per_second"


@dataclass(frozen=True, slots=True)
class HindcastRow:
    """One measure of one lane on both sides.

    Args:
        lane: the lane.
        measure: what is compared.
        logged: what the log says; None where nothing was seen.
        simulated: what the run gave; None likewise.
        difference: relative, as the module tells; None where it is not judged.
    """

    lane: Lane
    measure: HindcastMeasure
    logged: float | None
    simulated: float | None
    difference: float | None


@dataclass(frozen=True, slots=True)
class Hindcast:
    """What a run says of traffic whose outcome is known.

    Args:
        seconds: first to last arrival of the log's part.
        logged: lanes of the log.
        simulated: lanes of the run, in the mean over draws.
        rows: every measure of every lane, in order of lanes.
        draws: runs whose mean was taken, each with another draw of the lengths that the log lacks.
        notes: what a reader should know before believing it, one sentence each.
    """

    seconds: float
    logged: Mapping[Lane, LaneFigures]
    simulated: Mapping[Lane, LaneFigures]
    rows: tuple[HindcastRow, ...]
    draws: int = 1
    notes: tuple[str, ...] = ()

    @property
    def worst(self) -> HindcastRow | None:
        """Return the row of the largest difference; None when nothing was judged."""
        judged = [(row.difference, row) for row in self.rows if row.difference is not None]
        return max(judged, key=lambda entry: entry[0])[1] if judged else None

    @property
    def largest_difference(self) -> float | None:
        """Return the largest difference; None when nothing was judged."""
        return None if self.worst is None else self.worst.difference

    @property
    def holds(self) -> bool:
        """Say whether something was judged and no difference is above `MOST_DIFFERENCE`."""
        largest = self.largest_difference
        return largest is not None and largest <= MOST_DIFFERENCE

    def to_dict(self) -> dict[str, Any]:
        """Return everything as objects, lists, texts and numbers, ready for JSON."""
        worst = self.worst
        return {
            "seconds": self.seconds,
            "draws": self.draws,
            "holds": self.holds,
            "most_difference": MOST_DIFFERENCE,
            "largest_difference": self.largest_difference,
            "largest": None if worst is None else {"lane": worst.lane.value, "measure": worst.measure.value},
            "rows": [
                {
                    "lane": row.lane.value,
                    "measure": row.measure.value,
                    "logged": row.logged,
                    "simulated": row.simulated,
                    "difference": row.difference,
                }
                for row in self.rows
            ],
            "logged": {lane.value: asdict(figures) for lane, figures in self.logged.items()},
            "simulated": {lane.value: asdict(figures) for lane, figures in self.simulated.items()},
            "notes": list(self.notes),
        }


def mean_figures(draws: Sequence[Mapping[Lane, LaneFigures]]) -> dict[Lane, LaneFigures]:
    """Return the mean of each figure over at least one run; counts are rounded."""
    return {
        lane: _mean([draw.get(lane, NOTHING) for draw in draws]) for lane in Lane if any(lane in draw for draw in draws)
    }


def _mean(draws: Sequence[LaneFigures]) -> LaneFigures:
    timed = [one.ttft_p95_seconds for one in draws if one.ttft_p95_seconds is not None]
    return LaneFigures(
        tries=round(fmean(one.tries for one in draws)),
        refused_share=fmean(one.refused_share for one in draws),
        first_tokens=round(fmean(one.first_tokens for one in draws)),
        ttft_p95_seconds=fmean(timed) if timed else None,
        output_tokens_per_second=fmean(one.output_tokens_per_second for one in draws),
    )


def hindcast(
    logged: LoggedFigures, simulated: Mapping[Lane, LaneFigures], draws: int = 1, notes: tuple[str, ...] = ()
) -> Hindcast:
    """Return how a run compares with the log of its traffic.

    Args:
        logged: what the log says.
        simulated: what the run gave, by the same rules.
        draws: how many runs it is the mean of.
        notes: what is known to differ between the two.
    """
    lanes = [lane for lane in Lane if lane in logged.lanes or lane in simulated]
    few = tuple(_few(lane, logged.lanes.get(lane, NOTHING).tries) for lane in lanes)
    rows = tuple(
        row for lane in lanes for row in _rows(lane, logged.lanes.get(lane, NOTHING), simulated.get(lane, NOTHING))
    )
    return Hindcast(logged.seconds, logged.lanes, simulated, rows, draws, notes + tuple(filter(None, few)))


def _rows(lane: Lane, logged: LaneFigures, simulated: LaneFigures) -> Iterator[HindcastRow]:
    enough = logged.tries >= LEAST_SEEN
    refused, also_refused = logged.refused_share, simulated.refused_share
    by_share = abs(also_refused - refused) / max(refused, LEAST_SHARE)
    yield HindcastRow(lane, HindcastMeasure.REFUSED_SHARE, refused, also_refused, by_share if enough else None)
    ttft, also_ttft = logged.ttft_p95_seconds, simulated.ttft_p95_seconds
    timed = logged.first_tokens >= LEAST_SEEN
    yield HindcastRow(lane, HindcastMeasure.TTFT_P95, ttft, also_ttft, _relative(ttft, also_ttft) if timed else None)
    rate, also_rate = logged.output_tokens_per_second, simulated.output_tokens_per_second
    # Of a lane of which nothing is served, as overflow's, the refused share says all.
    by_rate = _relative(rate, also_rate) if enough and rate else None
    yield HindcastRow(lane, HindcastMeasure.OUTPUT_RATE, rate, also_rate, by_rate)


def _relative(logged: float | None, simulated: float | None) -> float | None:
    """Return |simulated - logged| / logged, what a run never gave counting as 0; None where the log has nothing."""
    return abs((simulated or 0.0) - logged) / logged if logged else None


def _few(lane: Lane, tries: int) -> str:
    if tries >= LEAST_SEEN:
        return ""
    return f"{lane.value}: {tries} tries in the log are too few to judge by; at least {LEAST_SEEN} are"
