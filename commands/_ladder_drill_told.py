"""Tells what drills found: the newest as a table, and how each rung's gap went over the earlier ones."""

from pathlib import Path
from typing import TYPE_CHECKING

from llmshed.errors import ExitCode
from llmshed.ladder.evaluation import is_beyond

from ._output import print_grid, print_json, print_note

if TYPE_CHECKING:
    from llmshed.drilling.terms import Path as DrillPath
    from llmshed.drilling.terms import Terms
    from llmshed.ladder.records import DrillFile, DrillRecord, Estimate, PathRecord

SCHEMA = "llmshed.drills/1"
FEW_CASES = 30
"""With fewer an interval of 95 % is wider than most gaps that anybody agrees on."""
MOST_SHOWN = 10
"""Drills of the trend; the file holds more."""


def show_drills(results: "DrillFile", terms: "Terms", place: Path | None, *, as_json: bool) -> None:
    """Print the pool's drills, newest first."""
    drills = [drill for drill in results.drills if drill.pool == terms.pool]
    if as_json:
        told = [drill.model_dump(by_alias=True, mode="json") for drill in drills]
        print_json(SCHEMA, {"pool": terms.pool, "file": None if place is None else str(place), "drills": told})
        return
    if not drills:
        print_note(f"pool {terms.pool} was never drilled")
        return
    newest = drills[0]
    print_grid(_caption(newest), _COLUMNS, [_row(path, terms) for path in newest.paths], _note(newest))
    rungs = [path.rung for path in terms.paths if path.rung is not None]
    rows = [[_time(drill), drill.ladder, *(_gap_then(drill, rung, newest) for rung in rungs)] for drill in drills]
    if len(rows) > 1:
        note = "* by another set of cases" if any(drill.set_sha256 != newest.set_sha256 for drill in drills) else ""
        print_grid("Gaps of earlier drills", ["when", "ladder", *rungs], rows[:MOST_SHOWN], note)


def verdict_code(drill: "DrillRecord", terms: "Terms") -> ExitCode:
    """Return the code to end with: beyond what was agreed, else too little to tell, else well."""
    words = [_verdict(record, _agreed(record, terms)) for record in drill.paths[1:]]
    if "beyond" in words:
        return ExitCode.CONFIG
    return ExitCode.NO_PROPOSAL if "no result" in words else ExitCode.OK


_COLUMNS = ("path", "answered", "changed", "result", "gap", "agreed", "TTFT", "latency", "tokens in", "out", "verdict")


def _row(path: "PathRecord", terms: "Terms") -> list[str]:
    agreed = _agreed(path, terms)
    return [
        path.rung or "primary",
        f"{path.answered:,} of {path.cases:,}",
        f"{path.changed:,}",
        _share(path.result),
        _share(path.gap),
        "" if agreed is None else f"{agreed:.1%}",
        _seconds(path.ttft_seconds),
        _seconds(path.latency_seconds),
        f"{path.input_tokens:,}",
        f"{path.output_tokens:,}",
        _verdict(path, agreed),
    ]


def _agreed(record: "PathRecord", terms: "Terms") -> float | None:
    found: list[DrillPath] = [path for path in terms.paths if path.rung == record.rung]
    return found[0].largest_quality_gap if found else None


def _verdict(record: "PathRecord", agreed: float | None) -> str:
    if record.rung is None:
        return ""
    if record.gap is None:
        return "no result"
    if agreed is None:
        return "nothing agreed"
    if is_beyond(record.gap.value, agreed):
        return "beyond"
    return "within, perhaps" if is_beyond(record.gap.high, agreed) else "within"


def _caption(drill: "DrillRecord") -> str:
    return f"Pool {drill.pool}, ladder {drill.ladder}, {drill.set_name}, {_time(drill)}"


def _note(drill: "DrillRecord") -> str:
    few = f" Fewer than {FEW_CASES} cases tell little." if drill.primary.cases < FEW_CASES else ""
    return f"Results and gaps with their intervals of 95 %; times are medians, TTFT from sending.{few}"


def _gap_then(drill: "DrillRecord", rung: str, newest: "DrillRecord") -> str:
    path = drill.path(rung)
    if path is None or path.gap is None:
        return ""
    return f"{path.gap.value:.1%}" + ("" if drill.set_sha256 == newest.set_sha256 else "*")


def _time(drill: "DrillRecord") -> str:
    return f"{drill.time:%Y-%m-%d %H:%M}Z"


def _share(told: "Estimate | None") -> str:
    return "" if told is None else f"{told.value:.1%} ({told.low:.1%} to {told.high:.1%})"


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f} s"
