"""Two configurations before the same traffic: what changes, measure by measure.

A rate, a duration or a count changes relatively, (against - base) / base; a share changes by percentage points, since
from 1 % to 2 % is no doubling of anything that a person feels. Where either side was not measured, or the base is 0, no
change is told.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from llmshed.whatif.report import RunReport


class Unit(Enum):
    """What a measure is counted in, and with it how its change is told."""

    PER_SECOND = "per_second"
    SECONDS = "seconds"
    COUNT = "count"
    SHARE = "share"


@dataclass(frozen=True, slots=True)
class Run:
    """One run and what it was of.

    Args:
        configuration: name of the configuration, as it was given.
        policy: name of the policy that decided.
        scale: factor on the trace's rate.
        report: what it gave.
    """

    configuration: str
    policy: str
    scale: float
    report: RunReport


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of a run that is compared.

    Args:
        name: stable key in JSON, with its unit.
        words: what people read.
        unit: what it is counted in.
        of: takes it from a report; None where it was not measured.
    """

    name: str
    words: str
    unit: Unit
    of: Callable[[RunReport], float | None]


MEASURES = (
    Measure(
        "goodput_requests_per_second",
        "good requests/s",
        Unit.PER_SECOND,
        lambda run: run.total.goodput_requests_per_second,
    ),
    Measure(
        "goodput_tokens_per_second", "good tokens/s", Unit.PER_SECOND, lambda run: run.total.goodput_tokens_per_second
    ),
    Measure("attainment", "attainment", Unit.SHARE, lambda run: run.total.attainment),
    Measure(
        "throughput_output_tokens_per_second",
        "output tokens/s",
        Unit.PER_SECOND,
        lambda run: run.total.throughput_output_tokens_per_second,
    ),
    Measure("ttft_p50_seconds", "TTFT p50", Unit.SECONDS, lambda run: run.total.ttft_seconds.p50),
    Measure("ttft_p95_seconds", "TTFT p95", Unit.SECONDS, lambda run: run.total.ttft_seconds.p95),
    Measure("tpot_p95_seconds", "TPOT p95", Unit.SECONDS, lambda run: run.total.tpot_seconds.p95),
    Measure("refused_tries", "refused tries", Unit.COUNT, lambda run: float(sum(run.total.refusals.values()))),
    Measure("given_up", "given up", Unit.COUNT, lambda run: float(run.total.given_up)),
    Measure("never_served_share", "never served", Unit.SHARE, lambda run: run.total.starvation.never_served_share),
    Measure("busy_share", "replicas busy", Unit.SHARE, lambda run: mean(one.busy_share for one in run.replicas)),
    Measure("kv_held_share", "KV held", Unit.SHARE, lambda run: mean(one.kv_held_share for one in run.replicas)),
    Measure("jain_served_share", "fairness (Jain)", Unit.SHARE, lambda run: run.fairness.jain_served_share),
)
"""What `--against` compares, in the order in which it is told."""


def mean(values: Iterable[float]) -> float | None:
    """Return the mean; None of nothing."""
    known = tuple(values)
    return sum(known) / len(known) if known else None


@dataclass(frozen=True, slots=True)
class Change:
    """One measure under both configurations; `change` as the module tells, None where none is told."""

    measure: Measure
    base: float | None
    against: float | None
    change: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """All measures of one policy and scale under two configurations."""

    policy: str
    scale: float
    base: str
    against: str
    changes: tuple[Change, ...]


def difference(base: Run, against: Run) -> Difference:
    """Return what changes from one run to the other, which has the same policy and scale."""
    changes = []
    for measure in MEASURES:
        before, after = measure.of(base.report), measure.of(against.report)
        changes.append(Change(measure, before, after, _change(measure.unit, before, after)))
    return Difference(base.policy, base.scale, base.configuration, against.configuration, tuple(changes))


def _change(unit: Unit, base: float | None, against: float | None) -> float | None:
    if base is None or against is None:
        return None
    if unit is Unit.SHARE:
        return against - base
    return (against - base) / base if base else None
