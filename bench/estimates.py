"""How true told waits are: `python bench/estimates.py [TRACE/REPLICA/CEILINGS ...]`, some minutes for all.

Recorded traces before the replicas of `bench/goodput.py` at 1x, 2x and 5x as it found them, all on a virtual clock, and
a sudden change from one trace to another. Waits of the first seconds, in which everything is learnt, are left out.
`estimate_watch` says what a told wait is held against. Prints a table for docs/performance.md.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, inf
from multiprocessing import Pool
from random import Random
from statistics import median

from estimate_watch import EstimateWatch, Return, Told
from goodput import ROWS
from goodput_case import case_named
from goodput_cases import CASES, Case, traffic
from goodput_rows import from_csv
from staged import shipped_stage

from llmshed.admission.estimate.factor import COVERED_RATIO
from llmshed.whatif.staging import build_controller
from llmshed.whatif.world import RunPlan, simulate
from llmshed.workload.ceilings import CeilingRule
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest

SCALES = (1.0, 2.0, 5.0)
WARM_UP_SECONDS = 20.0
LEAST_SECONDS = 0.05
"""Waits that were told and were shorter than this are left out: nobody would notice."""
SHORTEST_DRAIN_SECONDS = 4.0
"""Retry-After is told in whole seconds: shorter drains say nothing of it."""
CHANGE_AT_SECONDS = 300.0
CHANGE_LEARNT_SECONDS = 300.0
"""Time after a change of the mix within which estimates have to hold again."""
_HEAD = (
    "| trace | GPU | load | queued | ghosts | within | queued ones | estimate / wait | at best "
    "| Retry-After | early | excess |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class Line:
    """What was told in some time of one run."""

    name: str
    waits: tuple[Told, ...]
    returns: tuple[Return, ...]

    def text(self) -> str | None:
        """Return the line of the table; None when nothing was told."""
        counted = [one for one in self.waits if max(one.estimate, one.actual) > LEAST_SECONDS]
        if not counted:
            return None
        queued = [one for one in counted if not one.ghost]
        ratio = median(one.estimate / one.actual if one.actual > 0 else inf for one in counted)
        return (
            f"| {self.name} | {len(queued):,} | {len(counted) - len(queued):,} | {_within(counted)} | {_within(queued)}"
            f" | {ratio:.2f} | {_at_best(counted)} | {self._returns_text()} |"
        )

    def _returns_text(self) -> str:
        if not self.returns:
            return "0 | - | -"
        early = sum(ceil(one.told) < one.drained for one in self.returns) / len(self.returns)
        long = [ceil(one.told) / one.drained - 1 for one in self.returns if one.drained >= SHORTEST_DRAIN_SECONDS]
        excess = f"{100 * median(long):+.0f} % of {len(long):,}" if long else "-"
        return f"{len(self.returns):,} | {100 * early:.0f} % | {excess}"


def _within(waits: Sequence[Told]) -> str:
    """Return the share of waits that were no longer than told."""
    return f"{100 * sum(one.actual <= one.estimate for one in waits) / len(waits):.0f} %" if waits else "-"


def _at_best(waits: Sequence[Told]) -> str:
    """Return the median of estimate / wait, had the terms had the one factor that covers 90 % of these waits."""
    ratios = sorted(one.actual * one.factor / one.estimate if one.estimate > 0 else inf for one in waits)
    middle, covered = median(ratios), ratios[ceil(COVERED_RATIO * len(ratios)) - 1]
    return f"{covered / middle:.2f}" if middle > 0 and covered < inf else "-"


def watched(case: Case, requests: Iterator[TracedRequest]) -> EstimateWatch:
    """Return what was told of the waits of some requests before the replicas of a case."""
    setting = shipped_stage(case.replica, case.replicas)
    watch = EstimateWatch(build_controller(setting), setting)
    rng = Random("estimates/clients")  # noqa: S311 - draws of waits, nothing is kept secret
    simulate(setting, watch, requests, ClientModel.NONE, rng, RunPlan((500, 1500, 4000)))
    return watch


def at_scale(case: Case, scale: float) -> list[Line]:
    """Return the line of a case at a scale of its 1x."""
    watch = watched(case, traffic(case, scale * rate_of(case)))
    return [between(watch, f"{case.trace} | {_short(case)} | {scale:g}x", WARM_UP_SECONDS, inf)]


def after_change(first: Case, second: Case, scale: float) -> list[Line]:
    """Return lines of a run whose mix changes at once: before it, while it is learnt anew, and after that."""
    begin, then = (replace(case, seconds=CHANGE_AT_SECONDS, hurry=1) for case in (first, second))
    then = replace(then, seconds=2 * CHANGE_LEARNT_SECONDS)
    per_replica = first.replicas / second.replicas
    later = (
        replace(one, at_seconds=one.at_seconds + CHANGE_AT_SECONDS)
        for one in traffic(then, scale * rate_of(second) * per_replica)
    )
    watch = watched(first, chain(traffic(begin, scale * rate_of(first)), later))
    learnt = CHANGE_AT_SECONDS + CHANGE_LEARNT_SECONDS
    load = f"{_short(first)} | {scale:g}x"
    return [
        between(watch, f"{first.trace}, then | {load}", WARM_UP_SECONDS, CHANGE_AT_SECONDS),
        between(watch, f"{second.trace}, first 5 minutes | {load}", CHANGE_AT_SECONDS, learnt),
        between(watch, f"{second.trace} after that | {load}", learnt, inf),
    ]


def between(watch: EstimateWatch, name: str, begin: float, end: float) -> Line:
    """Return what was told between two instants."""
    waits = tuple(one for one in watch.waits if begin <= one.at < end)
    return Line(name, waits, tuple(one for one in watch.returns if begin <= one.at < end))


def rate_of(case: Case) -> float:
    """Return 1x of a case as `bench/goodput.py` found it."""
    place = (case.trace, case.replica, case.ceiling.value)
    return next(row.rate for row in from_csv(ROWS.read_text("utf-8")) if row.place == place and row.scale == 1.0)


def _short(case: Case) -> str:
    return f"{case.replicas} x {case.replica.rpartition('-')[2].upper()}"


def _lines(asked: tuple[Case, Case | None, float]) -> list[Line]:
    case, then, scale = asked
    return at_scale(case, scale) if then is None else after_change(case, then, scale)


def main(names: Sequence[str]) -> None:
    """Print the table of some cases, or of all with a change of the mix."""
    cases = [case_named(name) for name in names] or [case for case in CASES if case.ceiling is CeilingRule.POW2]
    asked: list[tuple[Case, Case | None, float]] = [(case, None, scale) for case in cases for scale in SCALES]
    if not names:
        conversations, code = (case_named(f"{trace}/llama-3-8b-a10g/pow2") for trace in ("azure_conv", "azure_code"))
        asked += [(conversations, code, 2.0), (code, conversations, 2.0)]
    print(_HEAD)
    with Pool(2) as pool:
        for lines in pool.imap(_lines, asked):
            for text in filter(None, (line.text() for line in lines)):
                print(text, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
