"""What the runs of `llmshed whatif` stand on, in words, and what should make a reader doubt them."""

from typing import TYPE_CHECKING

from llmshed.ladder.model import RungAction
from llmshed.rendering.figures import duration, factor, number, share
from llmshed.rendering.plain import readable
from llmshed.rendering.whatif_page import WhatifResult
from llmshed.whatif.gates.table import GATES
from llmshed.whatif.manners import engine_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llmshed.whatif.compare import Difference, Run
    from llmshed.whatif.hindcast import Hindcast
    from llmshed.whatif.setting import Setting
    from llmshed.workload.summary import TraceSummary

    from ._whatif_runs import Study
    from ._whatif_stages import Replicas, Stage

MOST_LEFT_OUT = 0.05
"""Share of infeasible requests from which on a reader is warned."""
MOST_MADE_UP = 0.10
"""Share of made-up lengths, likewise."""
MOST_GATEWAY_BUSY = 0.9
"""Share of the time in which the gateway works from which on a reader is warned that it is the bottleneck."""
_CLIENTS = {
    "none": "give up when refused",
    "polite": "come back when told, a few times",
    "sdk": "retry twice, as openai-python does",
    "rude": "retry at once, up to 50 times",
}
_CEILINGS = {
    "asked": "asked: those that the trace holds",
    "pow2": "pow2: the next power of two above the true length",
    "flat1024": "flat1024: 1,024 for each request",
    "flat4096": "flat4096: 4,096 for each request",
}


def result_of(
    study: "Study",
    replicas: "Replicas",
    runs: "tuple[Run, ...]",
    changes: "tuple[Difference, ...]",
    hindcast: "Hindcast | None",
) -> WhatifResult:
    """Return the result with the facts that it stands on."""
    notes = () if hindcast is None else hindcast.notes
    return WhatifResult(facts(study, replicas), runs, changes, warnings_of(study, runs) + notes, hindcast)


def facts(study: "Study", replicas: "Replicas") -> dict[str, str]:
    """Return what was simulated, by name, for people."""
    traffic, first = study.traffic, study.stages[0].setting()
    told = traffic.summary
    rate = "" if told.rate_per_second is None else f", {number(told.rate_per_second)} requests/s"
    seconds = duration(told.duration_seconds)
    lengths = f"mean {number(told.input_tokens.mean)} in, {number(told.output_tokens.mean)} out"
    scales = ", ".join(map(factor, study.scales))
    return {
        "trace": f"{traffic.name}: {traffic.format.name}, {told.requests:,} requests in {seconds}{rate}",
        "arrivals": _arrivals(study),
        "lengths": f"{lengths}; {share(told.imputed / told.requests)} of true lengths made up",
        "tenants": _tenants(told, first),
        "replicas": _replicas(replicas, study.stages[0]),
        "configurations": ", ".join(f"{stage.name} ({_budget(stage.setting())})" for stage in study.stages),
        **{f"policy {name}": GATES[name].stands_for for name in study.policies},
        "scales": f"{scales} by {'requests' if study.scale_by == 'rate' else 'time'}",
        "output ceilings": _CEILINGS[study.ceiling.value],
        "clients": f"{study.clients.value}: {_clients(study)}",
        "objectives": _objectives(first),
        "gateway": (
            f"{first.gateway_seconds_per_request:g} s a request,"
            f" {first.gateway_seconds_per_input_token * 1000:g} s a thousand tokens of its prompt,"
            f" {first.gateway_seconds_per_output_token * 1000:g} s of its answer"
        ),
        "seed": str(study.seed),
    }


def warnings_of(study: "Study", runs: "tuple[Run, ...]") -> tuple[str, ...]:
    """Return what a reader should know before believing the result."""
    told: list[str] = []
    for stage in study.stages:
        about = f"{stage.name}: " if len(study.stages) > 1 else ""
        told += [f"{about}{warning}" for warning in stage.setting().warnings]
    skipped = study.traffic.skipped.items()
    told += [f"{count:,} rows of the trace gave no request: {why}" for why, count in skipped]
    told += _not_played(study)
    return (*told, *_doubts(runs))


def _not_played(study: "Study") -> list[str]:
    """Return the rungs that act before a request is counted, which no trace holds anything of."""
    played = {RungAction.STOP_BULK, RungAction.CAP_OUTPUT, RungAction.SHED_INTERACTIVE}
    rungs = [rung for stage in study.stages for ladder in stage.ladders.values() for rung in ladder.rungs]
    names = dict.fromkeys(rung.name for rung in rungs if rung.action not in played)
    return [
        f"rung {readable(name)} changes nothing here: a trace holds no text, and each pool one model" for name in names
    ]


def _doubts(runs: "tuple[Run, ...]") -> "Iterator[str]":
    """Yield what in the runs themselves should make a reader doubt them."""
    left_out = max((run.report.total.infeasible / max(run.report.total.arrived, 1) for run in runs), default=0.0)
    if left_out > MOST_LEFT_OUT:
        yield (
            f"{share(left_out)} of the requests are infeasible and left out: an idle replica takes no such prompt, or"
            " cannot serve it within the objectives"
        )
    made_up = max((run.report.imputed_share for run in runs), default=0.0)
    if made_up > MOST_MADE_UP:
        yield f"{share(made_up)} of the true lengths are made up from those of like requests"
    for run in runs:
        if run.report.gateway_busy_share > MOST_GATEWAY_BUSY:
            yield (
                f"{run.policy} at {factor(run.scale)}: the gateway's one process was busy"
                f" {share(run.report.gateway_busy_share)} of the time, so it held requests up itself"
            )
        broken = run.report.ledger.broken_invariants_count
        if broken:
            yield f"{run.policy} at {factor(run.scale)}: {broken:,} broken rules, so this run is not to be believed"


def _clients(study: "Study") -> str:
    if study.traffic.format.tells_endings and study.clients.value == "none":
        return f"the log's own retries come {'as they came' if study.pace is None else 'as requests of their own'}"
    return _CLIENTS[study.clients.value]


def _arrivals(study: "Study") -> str:
    pace = study.pace
    if pace is None:
        return "trace: as the trace says"
    process = pace.process
    gaps = f"of coefficient of variation {process.interarrival_cv:g}" if process.shape else "all equal"
    return f"{process.name}: gaps {gaps}, {pace.rate_per_second:.4g} requests/s at 1x; order of the trace"


def _tenants(told: "TraceSummary", setting: "Setting") -> str:
    known = tuple(setting.policy.tenants)
    if len(known) == 1:
        return f"{told.tenants:,} in the trace; all count as {setting.default_tenant}"
    return f"{told.tenants:,} in the trace; {', '.join(known)} by name, all others as {setting.default_tenant}"


def _replicas(replicas: "Replicas", stage: "Stage") -> str:
    named = "the simulated replica that ships with llmshed" if replicas.name is None else replicas.name
    several = len(stage.copies) > 1
    pools = ", ".join(f"{copies} in pool {pool}" for pool, copies in stage.copies.items())
    return f"{replicas.count} x {named}, {engine_name(replicas.parameters)}{f': {pools}' if several else ''}"


def _budget(setting: "Setting") -> str:
    budgets = dict.fromkeys(
        f"{spec.budget.safe_budget_tokens:,} tokens a replica, profile {spec.profile}" for spec in setting.specs
    )
    return "; ".join(budgets)


def _objectives(setting: "Setting") -> str:
    tpot = ", ".join(f"{seconds:g} s {lane.value}" for lane, seconds in setting.objectives.tpot_seconds.items())
    shortest, multiple = setting.objectives.shortest_ttft_seconds, setting.objectives.idle_ttft_multiple
    ttft = f"TTFT max({shortest:g} s, {multiple:g} x that on an idle replica)"
    return f"{ttft}; TPOT {tpot}"
