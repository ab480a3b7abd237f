"""What `llmshed whatif` tells of its runs: facts and tables for people, one object for machines."""

from typing import TYPE_CHECKING, Any

from llmshed.rendering.figures import duration, factor, number, share
from llmshed.rendering.page import Table
from llmshed.rendering.plain import readable
from llmshed.rendering.whatif_page import WhatifResult
from llmshed.rendering.whatif_tables import difference_table, part_tables, scale_tables, scales_of
from llmshed.whatif.gates.table import GATES
from llmshed.whatif.setting import IDLE_TTFT_MULTIPLE, SHORTEST_TTFT_OBJECTIVE_SECONDS

from ._output import print_grid, print_note, print_table

if TYPE_CHECKING:
    from llmshed.whatif.compare import Difference, Run
    from llmshed.whatif.setting import Setting
    from llmshed.workload.summary import LengthSummary, TraceSummary

    from ._whatif_runs import Study
    from ._whatif_stages import Replicas, Stage

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
    study: "Study", replicas: "Replicas", runs: "tuple[Run, ...]", changes: "tuple[Difference, ...]"
) -> WhatifResult:
    """Return the result with the facts that it stands on."""
    return WhatifResult(facts(study, replicas), runs, changes, warnings_of(study))


def print_result(result: WhatifResult) -> None:
    """Print the facts, then the tables of each scale, narrow enough for a terminal; warnings go to stderr."""
    print_table({name: readable(fact) for name, fact in result.facts.items()})
    for one in result.differences:
        _print(difference_table(one))
    for scale in scales_of(result.runs):
        for table in (*scale_tables(result.runs, scale), *part_tables(result.runs, scale)):
            _print(table)
    for warning in result.warnings:
        print_note(warning)


def _print(table: Table) -> None:
    rows = [[readable(cell) for cell in row] for row in table.rows]
    print_grid(readable(table.caption), [readable(column) for column in table.columns], rows, readable(table.note))


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
        "lengths": f"{lengths}; {share(told.imputed / told.requests)} of true lengths made up",
        "tenants": _tenants(told, first),
        "replicas": _replicas(replicas, study.stages[0]),
        "configurations": ", ".join(f"{stage.name} ({_budget(stage.setting())})" for stage in study.stages),
        **{f"policy {name}": GATES[name].stands_for for name in study.policies},
        "scales": f"{scales} by {'requests' if study.scale_by == 'rate' else 'time'}",
        "output ceilings": _CEILINGS[study.ceiling.value],
        "clients": f"{study.clients.value}: {_CLIENTS[study.clients.value]}",
        "objectives": _objectives(first),
        "gateway": (
            f"{first.gateway_seconds_per_request:g} s a request and"
            f" {first.gateway_seconds_per_input_token * 1000:g} s a thousand tokens of its prompt"
        ),
        "seed": str(study.seed),
    }


def warnings_of(study: "Study") -> tuple[str, ...]:
    """Return what a reader should know before believing the result."""
    told: list[str] = []
    for stage in study.stages:
        about = f"{stage.name}: " if len(study.stages) > 1 else ""
        told += [f"{about}{warning}" for warning in stage.setting().warnings]
    skipped = study.traffic.skipped.items()
    told += [f"{count:,} rows of the trace gave no request: {why}" for why, count in skipped]
    return tuple(told)


def as_object(study: "Study", replicas: "Replicas", result: WhatifResult) -> dict[str, Any]:
    """Return everything as one object; the same seed gives the same bytes."""
    first, told = study.stages[0].setting(), study.traffic.summary
    return {
        "trace": {"file": readable(study.traffic.name), "format": study.traffic.format.name, **_summary(told)},
        "replica": {
            "name": replicas.name or "simulated",
            "count": replicas.count,
            "kv_tokens": replicas.parameters.kv_tokens,
        },
        "configurations": [
            {
                "name": stage.name,
                "replicas": [
                    {
                        "name": spec.name,
                        "pool": spec.pool,
                        "profile": spec.profile,
                        "safe_budget_tokens": spec.budget.safe_budget_tokens,
                    }
                    for spec in stage.setting().specs
                ],
            }
            for stage in study.stages
        ],
        "ceiling": study.ceiling.value,
        "clients": study.clients.value,
        "scale_by": study.scale_by,
        "seed": study.seed,
        "objectives": {
            "shortest_ttft_seconds": first.objectives.shortest_ttft_seconds,
            "idle_ttft_multiple": first.objectives.idle_ttft_multiple,
            "tpot_seconds": {lane.value: seconds for lane, seconds in first.objectives.tpot_seconds.items()},
        },
        "gateway_seconds_per_request": first.gateway_seconds_per_request,
        "gateway_seconds_per_input_token": first.gateway_seconds_per_input_token,
        "warnings": list(result.warnings),
        "runs": [
            {
                "configuration": run.configuration,
                "policy": run.policy,
                "scale": run.scale,
                "report": run.report.to_dict(),
            }
            for run in result.runs
        ],
        "differences": [_difference(one) for one in result.differences],
    }


def _summary(told: "TraceSummary") -> dict[str, Any]:
    return {
        "requests": told.requests,
        "duration_seconds": told.duration_seconds,
        "rate_per_second": told.rate_per_second,
        "interarrival_cv": told.interarrival_cv,
        "input_tokens": _lengths(told.input_tokens),
        "output_tokens": _lengths(told.output_tokens),
        "tenants": told.tenants,
        "imputed_share": told.imputed / told.requests,
    }


def _lengths(told: "LengthSummary") -> dict[str, Any]:
    quantiles = {f"p{at * 100:g}": value for at, value in told.quantiles.items()}
    return {"mean": told.mean, "total": told.total, **quantiles}


def _difference(told: "Difference") -> dict[str, Any]:
    return {
        "policy": told.policy,
        "scale": told.scale,
        "base": told.base,
        "against": told.against,
        "measures": {
            change.measure.name: {"base": change.base, "against": change.against, "change": change.change}
            for change in told.changes
        },
    }


def _tenants(told: "TraceSummary", setting: "Setting") -> str:
    known = tuple(setting.policy.tenants)
    if len(known) == 1:
        return f"{told.tenants:,} in the trace; all count as {setting.default_tenant}"
    return f"{told.tenants:,} in the trace; {', '.join(known)} by name, all others as {setting.default_tenant}"


def _replicas(replicas: "Replicas", stage: "Stage") -> str:
    named = "the simulated replica that ships with llmshed" if replicas.name is None else replicas.name
    several = len(stage.copies) > 1
    pools = ", ".join(f"{copies} in pool {pool}" for pool, copies in stage.copies.items())
    return f"{replicas.count} x {named}{f': {pools}' if several else ''}"


def _budget(setting: "Setting") -> str:
    budgets = dict.fromkeys(
        f"{spec.budget.safe_budget_tokens:,} tokens a replica, profile {spec.profile}" for spec in setting.specs
    )
    return "; ".join(budgets)


def _objectives(setting: "Setting") -> str:
    tpot = ", ".join(f"{seconds:g} s {lane.value}" for lane, seconds in setting.objectives.tpot_seconds.items())
    ttft = f"TTFT max({SHORTEST_TTFT_OBJECTIVE_SECONDS:g} s, {IDLE_TTFT_MULTIPLE:g} x that on an idle replica)"
    return f"{ttft}; TPOT {tpot}"
