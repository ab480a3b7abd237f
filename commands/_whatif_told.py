"""How `llmshed whatif` tells its result: tables for people, one object for machines."""

from typing import TYPE_CHECKING, Any

from llmshed.rendering.hindcast_table import hindcast_table
from llmshed.rendering.page import Table
from llmshed.rendering.plain import readable
from llmshed.rendering.whatif_page import WhatifResult
from llmshed.rendering.whatif_tables import difference_table, part_tables, scale_tables, scales_of
from llmshed.whatif.manners import engine_name

from ._output import print_grid, print_note, print_table

if TYPE_CHECKING:
    from llmshed.whatif.compare import Difference
    from llmshed.workload.summary import LengthSummary, TraceSummary

    from ._whatif_runs import Study
    from ._whatif_stages import Replicas


def print_result(result: WhatifResult) -> None:
    """Print the facts, then the tables of each scale, narrow enough for a terminal; warnings go to stderr."""
    print_table({name: readable(fact) for name, fact in result.facts.items()})
    if result.hindcast is not None:
        _print(hindcast_table(result.hindcast))
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


def as_object(study: "Study", replicas: "Replicas", result: WhatifResult) -> dict[str, Any]:
    """Return everything as one object; the same seed gives the same bytes."""
    first, told = study.stages[0].setting(), study.traffic.summary
    return {
        "trace": {"file": readable(study.traffic.name), "format": study.traffic.format.name, **_summary(told)},
        "arrivals": _arrivals(study),
        "replica": {
            "name": replicas.name or "simulated",
            "engine": engine_name(replicas.parameters),
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
        "gateway_seconds_per_output_token": first.gateway_seconds_per_output_token,
        "warnings": list(result.warnings),
        "hindcast": None if result.hindcast is None else result.hindcast.to_dict(),
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


def _arrivals(study: "Study") -> dict[str, Any]:
    """Return how requests come at 1x."""
    told, pace = study.traffic.summary, study.pace
    if pace is None:
        return {
            "process": "trace",
            "rate_per_second": told.rate_per_second,
            "interarrival_cv": told.interarrival_cv,
        }
    return {
        "process": pace.process.name,
        "rate_per_second": pace.rate_per_second,
        "interarrival_cv": pace.process.interarrival_cv,
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
