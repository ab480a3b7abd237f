"""The record of a drill from what became of its cases, and a row of figures for each of them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import median
from typing import Any

from llmshed.drilling.run import Outcome
from llmshed.drilling.terms import Path, Terms
from llmshed.ladder.evaluation import Pair, gap_of, mean_result
from llmshed.ladder.records import DrillRecord, Estimate, PathRecord

DRILL_SCHEMA = "llmshed.drill/1"
CASE_SCHEMA = "llmshed.drill_case/1"


def drill_record(
    outcomes: Sequence[Outcome], terms: Terms, set_name: str, set_sha256: str, time: datetime
) -> DrillRecord:
    """Return the record of a drill; `outcomes` are in the order of the cases and then of the paths."""
    by_path = {path.rung: [one for one in outcomes if one.path.rung == path.rung] for path in terms.paths}
    primary = by_path[None]
    return DrillRecord.model_validate(
        {
            "schema": DRILL_SCHEMA,
            "time": time,
            "pool": terms.pool,
            "ladder": terms.ladder,
            "set_name": set_name,
            "set_sha256": set_sha256,
            "paths": tuple(_path_record(path, by_path[path.rung], primary, terms) for path in terms.paths),
        }
    )


def case_row(outcome: Outcome) -> dict[str, Any]:
    """Return one case on one path, without a word of what was said."""
    answer = outcome.answer
    return {
        "schema": CASE_SCHEMA,
        "case": outcome.case.id,
        "rung": outcome.path.rung,
        "result": outcome.result,
        "changed": outcome.changed,
        "ttft_seconds": answer.ttft_seconds,
        "latency_seconds": answer.latency_seconds,
        "input_tokens": answer.input_tokens,
        "output_tokens": answer.output_tokens,
        "finish_reason": answer.finish_reason,
        "status": answer.status,
        "error": outcome.error,
    }


def _path_record(path: Path, own: Sequence[Outcome], primary: Sequence[Outcome], terms: Terms) -> PathRecord:
    results = [(one.case.weight, one.result) for one in own if one.result is not None]
    pairs = [Pair(p.case.weight, p.result, d.result) for p, d in zip(primary, own, strict=True)]
    served = [one.answer for one in own if one.answer.status == 200]
    return PathRecord(
        rung=path.rung,
        terms=path.terms,
        pool=path.pool,
        model=terms.models[path.pool],
        facts=terms.facts[path.pool],
        cases=len(own),
        answered=len(results),
        changed=sum(one.changed for one in own),
        result=Estimate.of(mean_result(results)),
        gap=None if path.rung is None else Estimate.of(gap_of(pairs)),
        ttft_seconds=_median(answer.ttft_seconds for answer in served),
        latency_seconds=_median(answer.latency_seconds for answer in served),
        input_tokens=sum(answer.input_tokens or 0 for answer in served),
        output_tokens=sum(answer.output_tokens or 0 for answer in served),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
