"""Counts and distributions of the requests of one cell; cells merge into lanes, classes, quartiles and the whole."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from llmshed.whatif.report import Quantiles, Slice, Starvation
from llmshed.workload.sketch import QuantileSketch


def quantiles_of(sketch: QuantileSketch) -> Quantiles:
    """Return the figures of a distribution."""
    p50, p90, p95, p99 = sketch.quantiles((0.5, 0.9, 0.95, 0.99))
    return Quantiles(sketch.count, sketch.mean(), p50, p90, p95, p99, sketch.most)


@dataclass(slots=True)
class SliceTally:
    """Running figures; the words are those of `report.Slice`, counts beginning with `window_` end with the window."""

    arrived: int = 0
    infeasible: int = 0
    finished: int = 0
    failed: int = 0
    given_up: int = 0
    unfinished: int = 0
    good: int = 0
    good_tokens: int = 0
    good_output_tokens: int = 0
    offered_tokens: int = 0
    window_finished: int = 0
    window_input_tokens: int = 0
    window_output_tokens: int = 0
    served: int = 0
    retries: int = 0
    longest_wait_seconds: float | None = None
    refusals: Counter[str] = field(default_factory=Counter)
    ttft: QuantileSketch = field(default_factory=QuantileSketch)
    try_ttft: QuantileSketch = field(default_factory=QuantileSketch)
    tpot: QuantileSketch = field(default_factory=QuantileSketch)
    gate_wait: QuantileSketch = field(default_factory=QuantileSketch)

    @property
    def ended(self) -> int:
        """Return the requests that had their end, or count as infeasible."""
        return self.infeasible + self.finished + self.failed + self.given_up + self.unfinished

    def note_wait(self, seconds: float) -> None:
        """Note how long someone waited for a first token, or has waited without one."""
        self.longest_wait_seconds = max(seconds, self.longest_wait_seconds or 0.0)

    def merge(self, other: "SliceTally") -> None:
        """Take in another cell, which stays as it is."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.refusals.update(other.refusals)
        for name in _SKETCHES:
            getattr(self, name).merge(getattr(other, name))
        if other.longest_wait_seconds is not None:
            self.note_wait(other.longest_wait_seconds)

    def slice(self, seconds: float, longest_gap_seconds: float | None) -> Slice:
        """Return the figures, with rates over an offered time of `seconds`, more than 0."""
        feasible = self.arrived - self.infeasible
        return Slice(
            arrived=self.arrived,
            infeasible=self.infeasible,
            finished=self.finished,
            failed=self.failed,
            given_up=self.given_up,
            unfinished=self.unfinished,
            good=self.good,
            attainment=self.good / feasible if feasible else None,
            goodput_requests_per_second=self.good / seconds,
            goodput_tokens_per_second=self.good_tokens / seconds,
            goodput_output_tokens_per_second=self.good_output_tokens / seconds,
            throughput_requests_per_second=self.window_finished / seconds,
            throughput_input_tokens_per_second=self.window_input_tokens / seconds,
            throughput_output_tokens_per_second=self.window_output_tokens / seconds,
            offered_tokens_per_second=self.offered_tokens / seconds,
            good_tokens_share=self.good_tokens / self.offered_tokens if self.offered_tokens else None,
            ttft_seconds=quantiles_of(self.ttft),
            try_ttft_seconds=quantiles_of(self.try_ttft),
            tpot_seconds=quantiles_of(self.tpot),
            gate_wait_seconds=quantiles_of(self.gate_wait),
            refusals=dict(sorted(self.refusals.items())),
            retries=self.retries,
            starvation=Starvation(
                longest_wait_seconds=self.longest_wait_seconds,
                never_served_share=(feasible - self.served) / feasible if feasible else 0.0,
                longest_gap_seconds=longest_gap_seconds,
            ),
        )


def merged(tallies: Iterable[SliceTally]) -> SliceTally:
    """Return the sum of some cells."""
    whole = SliceTally()
    for tally in tallies:
        whole.merge(tally)
    return whole


_COUNTS = (
    "arrived", "infeasible", "finished", "failed", "given_up", "unfinished", "good", "good_tokens",
    "good_output_tokens", "offered_tokens", "window_finished", "window_input_tokens", "window_output_tokens",
    "served", "retries",
)  # fmt: skip
_SKETCHES = ("ttft", "try_ttft", "tpot", "gate_wait")
