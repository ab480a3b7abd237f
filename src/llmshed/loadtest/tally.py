"""What came of a run, counted as it ends: waits, refusals and goodput, by lane.

Memory does not grow with the run: quantiles come from sketches, to within half a per cent.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from llmshed.admission.reasons import Reason
from llmshed.observability.goodput import is_ours
from llmshed.workload.asks import Outcome, Sample
from llmshed.workload.sketch import QuantileSketch

if TYPE_CHECKING:
    from llmshed.loadtest.open_loop import Visit
    from llmshed.loadtest.yardstick import Yardstick

SHARES: Final = (0.5, 0.9, 0.95, 0.99, 1.0)
NO_LANE: Final = "all"
_RELATIVE_ERROR: Final = 0.005
_CLIENTS_OWN_STATUSES: Final = frozenset({400, 401, 403, 404, 405, 413, 415, 422, 431})
_REASONS: Final = {reason.value: reason for reason in Reason}


def _sketch() -> QuantileSketch:
    return QuantileSketch(_RELATIVE_ERROR)


@dataclass(slots=True)
class LaneTally:
    """One lane's visits.

    Args:
        visits: requests, each with all its tries.
        tries: requests that were sent.
        finished: visits whose whole answer came.
        good: those of them that met their objectives.
        counted: visits that goodput is a share of: not those that left or were the client's own mistake.
        refusals: refused tries by reason.
        failures: failed tries by reason.
        cancelled: visits that the generator closed.
        output_tokens: tokens of all answers, whole or not.
        good_tokens: input and output tokens of good visits.
        ttft: planned instant of the first try to first token, in seconds.
        itl: gaps between events with output.
        tpot: mean time per output token after the first.
        end_to_end: planned instant of the first try to the end of a whole answer.
    """

    visits: int = 0
    tries: int = 0
    finished: int = 0
    good: int = 0
    counted: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    cancelled: int = 0
    output_tokens: int = 0
    good_tokens: int = 0
    ttft: QuantileSketch = field(default_factory=_sketch)
    itl: QuantileSketch = field(default_factory=_sketch)
    tpot: QuantileSketch = field(default_factory=_sketch)
    end_to_end: QuantileSketch = field(default_factory=_sketch)

    @property
    def attained(self) -> float | None:
        """Return the share of good visits among those that count; None without any."""
        return self.good / self.counted if self.counted else None

    def waits(self) -> Mapping[str, QuantileSketch]:
        """Return the four kinds of waits by name."""
        return {"ttft": self.ttft, "itl": self.itl, "tpot": self.tpot, "end_to_end": self.end_to_end}


class Tally:
    """Counts visits by lane, in the order in which lanes are first seen.

    Args:
        yardstick: the objectives.
    """

    def __init__(self, yardstick: "Yardstick") -> None:
        self._yardstick = yardstick
        self.lanes: dict[str, LaneTally] = {}
        self.first_planned_at: float | None = None
        self.last_end_at = 0.0
        self.miscounted = 0
        """Answers whose gateway counted other input tokens than the prompt was made of."""

    @property
    def span_seconds(self) -> float:
        """Return the time from the first planned request to the last end; 0 without any."""
        return 0.0 if self.first_planned_at is None else self.last_end_at - self.first_planned_at

    def add(self, visit: "Visit") -> None:
        """Count a visit that is over."""
        last = visit.last
        self._note_times(visit.planned_at, last.sample.finished_at)
        lane = self.lanes.setdefault(last.lane or NO_LANE, LaneTally())
        lane.visits += 1
        lane.tries += len(visit.replies)
        for reply in visit.replies:
            sample = reply.sample
            lane.output_tokens += sample.output_tokens
            if sample.outcome is Outcome.REFUSED:
                lane.refusals[reply.reason] += 1
            elif sample.outcome is Outcome.FAILED:
                lane.failures[reply.reason] += 1
            told = reply.told.input_tokens
            self.miscounted += told is not None and told != sample.ask.input_tokens
        self._count_ending(lane, visit)

    def _note_times(self, planned_at: float, finished_at: float) -> None:
        if self.first_planned_at is None or planned_at < self.first_planned_at:
            self.first_planned_at = planned_at
        self.last_end_at = max(self.last_end_at, finished_at)

    def _count_ending(self, lane: LaneTally, visit: "Visit") -> None:
        sample = visit.last.sample
        ttft = visit.ttft_seconds
        if ttft is not None:
            lane.ttft.add(ttft)
        if sample.outcome is Outcome.CANCELLED:
            lane.cancelled += 1
            return
        for gap in sample.itl_seconds:
            lane.itl.add(gap)
        lane.counted += _counts(visit)
        if sample.outcome is not Outcome.FINISHED:
            return
        lane.finished += 1
        lane.end_to_end.add(sample.finished_at - visit.planned_at)
        tpot = sample.tpot_seconds
        if tpot is not None:
            lane.tpot.add(tpot)
        if ttft is not None and self._in_time(sample, ttft, tpot):
            lane.good += 1
            lane.good_tokens += sample.ask.input_tokens + sample.output_tokens

    def _in_time(self, sample: Sample, ttft: float, tpot: float | None) -> bool:
        in_pace = tpot is None or tpot <= self._yardstick.tpot_seconds
        return in_pace and ttft <= self._yardstick.ttft_seconds(sample.ask.input_tokens)


def _counts(visit: "Visit") -> bool:
    """Say whether goodput is a share of it: a request that may never be served, or that is wrong, is not in it."""
    reply = visit.last
    if reply.sample.outcome is Outcome.FINISHED:
        return True
    reason = _REASONS.get(reply.reason)
    return is_ours(reason) if reason is not None else reply.sample.status not in _CLIENTS_OWN_STATUSES
