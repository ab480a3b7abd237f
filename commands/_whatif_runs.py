"""The runs of `llmshed whatif`: each scale, configuration and policy once, from generators of the seed's own."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Literal, assert_never

from llmshed.whatif.compare import Difference, Run, difference
from llmshed.whatif.gates.table import build_gate
from llmshed.whatif.world import RunPlan, simulate
from llmshed.workload.arrivals import with_arrivals
from llmshed.workload.ceilings import CeilingRule, with_ceilings
from llmshed.workload.clients import ClientModel
from llmshed.workload.scaling import in_rate, in_time

if TYPE_CHECKING:
    from llmshed.whatif.report import RunReport
    from llmshed.workload.request import TracedRequest

    from ._whatif_pace import Pace
    from ._whatif_stages import Stage
    from ._whatif_traffic import Traffic

ScaleBy = Literal["rate", "time"]


@dataclass(frozen=True, slots=True)
class Study:
    """All that is run.

    Args:
        traffic: what arrives.
        pace: how it arrives; None for as its trace says.
        stages: the configurations, the base first.
        policies: what decides.
        scales: factors on the traffic.
        scale_by: whether more of the traffic comes, or the same faster.
        ceiling: where output ceilings come from.
        clients: what refused clients do.
        seed: of every draw.
    """

    traffic: "Traffic"
    pace: "Pace | None"
    stages: "tuple[Stage, ...]"
    policies: tuple[str, ...]
    scales: tuple[float, ...]
    scale_by: ScaleBy
    ceiling: CeilingRule
    clients: ClientModel
    seed: int

    @property
    def count(self) -> int:
        """Return how many runs there are."""
        return len(self.scales) * len(self.stages) * len(self.policies)


def run_study(study: Study, progress: Callable[[int, float], None]) -> Iterator[Run]:
    """Yield each run as it ends, by scale, then configuration, then policy.

    Args:
        study: what is run.
        progress: told how many runs have ended, and the share of the current one's traffic that has arrived.
    """
    done = 0
    for scale in study.scales:
        for stage in study.stages:
            for policy in study.policies:
                seconds = offered_seconds(study, scale)

                def told(at_seconds: float, ended: int = done, whole: float = seconds) -> None:
                    progress(ended, min(at_seconds / whole, 1.0) if whole > 0 else 1.0)

                yield Run(stage.name, policy, scale, _report(study, stage, policy, scale, told))
                done += 1
    progress(done, 0.0)


def offered_seconds(study: Study, scale: float) -> float:
    """Return about how long the scaled traffic arrives."""
    told = study.traffic.summary
    whole = told.duration_seconds if study.pace is None else study.pace.seconds(told.requests)
    return whole / scale if study.scale_by == "time" else whole


def differences(study: Study, runs: tuple[Run, ...]) -> tuple[Difference, ...]:
    """Return what the second configuration changes, for each scale and policy; empty without one, or without runs."""
    if len(study.stages) < 2 or not runs:
        return ()
    found = {(run.configuration, run.policy, run.scale): run for run in runs}
    base, against = (stage.name for stage in study.stages)
    return tuple(
        difference(found[base, policy, scale], found[against, policy, scale])
        for scale in study.scales
        for policy in study.policies
    )


def _report(study: Study, stage: "Stage", policy: str, scale: float, told: Callable[[float], None]) -> "RunReport":
    setting = stage.setting()
    gate = build_gate(policy, setting)
    return simulate(
        setting, gate, _arrivals(study, scale), study.clients, rng_of(study, "clients"), plan_of(study), told
    )


def plan_of(study: Study) -> RunPlan:
    """Return how every run is looked at: with the quartiles of the traffic as it is."""
    return RunPlan(study.traffic.summary.input_quartile_edges)


def _arrivals(study: Study, scale: float) -> "Iterator[TracedRequest]":
    """Return the scaled traffic.

    Copies of a trace are laid over each other before they are given other times. Done the other way round, ten streams
    in bursts would make one that is nearly Poisson, so that scales would differ in more than their rate.
    """
    requests = with_ceilings(study.traffic.requests(), study.ceiling)
    match study.scale_by:
        case "time":
            return in_time(_paced(study, requests, 1.0), scale)
        case "rate":
            seconds = study.traffic.summary.duration_seconds
            return _paced(study, in_rate(requests, scale, rng_of(study, "scale"), seconds), scale)
        case _:
            assert_never(study.scale_by)


def _paced(study: Study, requests: "Iterator[TracedRequest]", factor: float) -> "Iterator[TracedRequest]":
    """Return the requests at the pace of the study times a factor."""
    pace = study.pace
    if pace is None:
        return requests
    return with_arrivals(requests, pace.process.arrivals(factor * pace.rate_per_second, rng_of(study, "arrivals")))


def rng_of(study: Study, purpose: str) -> Random:
    """Return the generator of one purpose: equal for every run, so that all policies meet the same traffic."""
    return Random(f"{study.seed}/{purpose}")  # noqa: S311 - traffic is made up, nothing is kept secret
