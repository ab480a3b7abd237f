"""What the page of `llmshed calibrate` shows of a run."""

from typing import TYPE_CHECKING

from llmshed.calibration.intervals import ALLOWED_LATE_RATIO
from llmshed.calibration.results import UNITS
from llmshed.rendering.calibration_page import CalibrationFigures, LevelsSeen, SweepFigures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llmshed.calibration.results import Result, SweepResult
    from llmshed.profile import Profile

    from ._calibrate_profile import Found
    from ._calibrate_run import Calibrated

_SHOWN = ("budget", "prefill", "decode", "latency", "output")
"""Sections of a profile that were measured."""


def figures_of(done: "Calibrated", found: "Found | None", facts: "Mapping[str, str]") -> CalibrationFigures:
    """Return the figures of a run; `facts` are those of the command's own table."""
    result = done.run.standing.machine.result()
    return CalibrationFigures(
        summary=(_summary(done, found),),
        facts=tuple(facts.items()),
        warnings=(*_warnings(done), *(() if found is None else found.remarks)),
        proposed=() if found is None else tuple(_proposed(found.profile)),
        sweeps=tuple(_sweep(sweep) for sweep in result.sweeps),
        counts=_counts(result),
    )


def _summary(done: "Calibrated", found: "Found | None") -> str:
    if found is None:
        return f"No profile: {done.ended}."
    budget = found.profile.budget
    return (
        f"The replica carries {budget.gross_ceiling_tokens:,} reserved tokens and {budget.hard_cap_sequences:,}"
        f" sequences within its objectives; {budget.guard_band_ratio:.0%} of the tokens are never lent."
    )


def _warnings(done: "Calibrated") -> list[str]:
    limits = () if done.doing is None else done.doing.limits
    warnings = [f"The generator was a bottleneck itself: {limit}." for limit in limits]
    if done.run.standing.began_at is not None:
        warnings.append("The run was interrupted and gone on with.")
    return warnings


def _proposed(profile: "Profile") -> list[tuple[str, str]]:
    told = profile.model_dump(mode="json", exclude_none=True, include=set(_SHOWN))
    return [
        (f"{section}.{name}", f"{value:,}" if type(value) is int else str(value))
        for section in _SHOWN
        for name, value in told.get(section, {}).items()
        if name != "curve"
    ]


def _sweep(sweep: "SweepResult") -> SweepFigures:
    knee = sweep.knee
    return SweepFigures(
        name=sweep.phase.value.capitalize(),
        unit=UNITS[sweep.phase],
        seen=(LevelsSeen("TTFT", sweep.late), LevelsSeen("TPOT", sweep.slow)),
        low=None if knee is None else knee.low,
        point=None if knee is None else knee.point,
        high=None if knee is None else knee.high,
        allowed_ratio=ALLOWED_LATE_RATIO,
    )


def _counts(result: "Result") -> dict[str, int]:
    return {"finished": result.finished, "refused": result.refused, "failed": result.failed}
