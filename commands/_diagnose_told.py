"""A diagnosis for people, for programs and for Nagios."""

import math
import textwrap
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from llmshed.diagnosis.changes import Change
from llmshed.diagnosis.checks import shown
from llmshed.diagnosis.diagnose import Diagnosis, Finding, Named, Reading
from llmshed.diagnosis.signals import SIGNALS, Stage
from llmshed.diagnosis.spark import sparkline
from llmshed.errors import ExitCode, MonitoringCode

from . import _output
from ._spans import written_span

if TYPE_CHECKING:
    from ._diagnose_read import Asking
    from .diagnose import FailOn, Format

SCHEMA = "llmshed.diagnose/1"
CODES = {
    Finding.HEALTHY: ExitCode.OK,
    Finding.WARNING: MonitoringCode.WARNING,
    Finding.OVERLOAD: MonitoringCode.CRITICAL,
    Finding.UNKNOWN: MonitoringCode.UNKNOWN,
}
COLUMNS = 100
"""Width of the text; tables are as wide as what they hold."""
SPARKS = 12
"""Characters of a sparkline, so that a row has less than 100."""
_NAGIOS = {Finding.HEALTHY: "OK", Finding.WARNING: "WARNING", Finding.OVERLOAD: "CRITICAL", Finding.UNKNOWN: "UNKNOWN"}
_HEADLINE = {
    Finding.HEALTHY: "No overload: interactive requests met their objectives.",
    Finding.WARNING: "No overload, but something is not as it should be.",
    Finding.OVERLOAD: "Overload: interactive requests missed their objectives.",
    Finding.UNKNOWN: "Not enough data: nothing tells whether interactive requests met their objectives.",
}


def headline(told: Diagnosis) -> str:
    """Return the finding in one sentence."""
    return _HEADLINE[told.finding]


def exit_code(told: Diagnosis, fail_on: "FailOn") -> int:
    """Return the exit code; what could not be told is one wherever any finding is."""
    code = CODES[told.finding]
    match fail_on:
        case "never":
            return ExitCode.OK
        case "overload":
            return ExitCode.OK if told.finding is Finding.WARNING else code
        case _:
            return code


def print_queries(name: str, asking: "Asking") -> None:
    """Print the query of a signal, or of all.

    Raises:
        typer.BadParameter: there is no such signal.
    """
    found = [signal for signal in SIGNALS if name in {signal.name, "all"}]
    if not found:
        known = ", ".join(signal.name for signal in SIGNALS)
        raise typer.BadParameter(f"--explain {name!r}: must be `all` or one of {known}")
    for signal in found:
        typer.echo(f"# {signal.name}: {signal.meaning}\n{asking.query(signal)}\n")


def print_diagnosis(told: Diagnosis, asking: "Asking", form: "Format") -> None:
    """Print a diagnosis."""
    match form:
        case "json":
            _output.print_json(SCHEMA, report(told, asking))
        case "nagios":
            typer.echo(_nagios(told))
        case _:
            _print_for_people(told, asking)


def report(told: Diagnosis, asking: "Asking") -> dict[str, Any]:
    """Return a diagnosis as JSON."""
    return {
        "finding": told.finding,
        "began": _iso(told.began),
        "prometheus": asking.url,
        "window_seconds": asking.window_seconds,
        "baseline_seconds": asking.baseline_seconds,
        "step_seconds": asking.step_seconds,
        "signals": [_signal_report(reading, asking) for reading in told.readings],
        "steps": [
            {"number": step.number, "title": step.title, "state": step.state, "sentences": list(step.sentences)}
            for step in told.steps
        ],
        "causes": [_named_report(named) for named in told.named],
        "change": None if told.change is None else told.change._asdict(),
        "not_looked_at": list(told.unseen),
        "warnings": list(told.warnings),
    }


def _signal_report(reading: Reading, asking: "Asking") -> dict[str, Any]:
    departure = reading.departure
    return {
        "name": reading.signal.name,
        "stage": reading.signal.stage,
        "unit": reading.signal.unit,
        "value": reading.value,
        "baseline": reading.baseline,
        "departed": None if departure is None else _iso(departure.at),
        "unread": reading.unread,
        "query": asking.query(reading.signal),
    }


def _named_report(named: Named) -> dict[str, Any]:
    suspicion = named.suspicion
    return {
        "cause": suspicion.cause,
        "share": round(named.share, 3),
        "confidence": named.confidence,
        "weight": round(suspicion.weight, 3),
        "for": list(suspicion.held),
        "against": list(suspicion.against),
        "not_looked_at": suspicion.unknown,
    }


def _iso(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def _nagios(told: Diagnosis) -> str:
    missed = next((one.value for one in told.readings if one.signal.name == "missed"), None)
    cause = ", ".join(named.suspicion.cause for named in told.named)
    words = f"LLMSHED {_NAGIOS[told.finding]} - {_HEADLINE[told.finding]}" + (f" Cause: {cause}." if cause else "")
    return words if missed is None else f"{words} | missed={100 * missed:.1f}%;;;0;100"


def _print_for_people(told: Diagnosis, asking: "Asking") -> None:
    typer.secho(_HEADLINE[told.finding], bold=True)
    began = "" if told.began is None else f"; trouble began {_clock(told.began)}"
    spans = f"last {written_span(asking.window_seconds)} against the {written_span(asking.baseline_seconds)} before"
    typer.echo(f"{asking.url}: {spans}, a value every {written_span(asking.step_seconds)}{began}. Times are UTC.")
    for stage in Stage:
        _print_stage(stage, [one for one in told.readings if one.signal.stage is stage])
    typer.echo("")
    for step in told.steps:
        typer.echo(f"{step.number}. {step.title}: {step.state.replace('_', ' ')}")
        for sentence in step.sentences:
            _print_wrapped(sentence)
    for named in told.named:
        _print_named(named)
    if told.change is not None:
        _print_change(told.change)
    for warning in told.warnings:
        typer.echo("")
        _print_wrapped(f"Warning: {warning}", indent="")
    if told.unseen:
        words = ", ".join(cause.replace("_", " ") for cause in told.unseen)
        typer.echo("")
        _print_wrapped(f"Not looked at, for want of data: {words}.", indent="")


def _print_stage(stage: Stage, readings: list[Reading]) -> None:
    known = [one for one in readings if one.value is not None]
    rows = [_row(one) for one in known]
    missing = [one.signal.name for one in readings if one.value is None]
    note = textwrap.fill(f"not told: {', '.join(missing)}", COLUMNS) if missing else ""
    if rows:
        _output.print_grid(str(stage), ("", "course", "now", "before", "departed"), rows, note)
    else:
        _output.print_note(f"{stage}: nothing is told of any of {', '.join(missing)}")


def _row(reading: Reading) -> tuple[str, str, str, str, str]:
    name, value, baseline = reading.signal.name, reading.value, reading.baseline
    return (
        reading.signal.meaning,
        "" if reading.track is None else sparkline(reading.track, SPARKS),
        "" if value is None or math.isnan(value) else shown(name, value),
        "" if baseline is None else shown(name, baseline),
        "" if reading.departure is None else _clock(reading.departure.at),
    )


def _print_named(named: Named) -> None:
    suspicion = named.suspicion
    share = f", {named.share:.0%} of the weight" if named.share < 1 else ""
    typer.secho(f"\n5. Cause: {suspicion.cause.replace('_', ' ')} (confidence {named.confidence}{share})", bold=True)
    for sentence in suspicion.held:
        _print_wrapped(f"for: {sentence}")
    for sentence in suspicion.against:
        _print_wrapped(f"against: {sentence}")
    if suspicion.unknown:
        _print_wrapped(f"{suspicion.unknown} more could not be looked at")


def _print_change(change: Change) -> None:
    setting = "" if change.setting is None else f"{change.setting}: "
    typer.echo("")
    _print_wrapped(f"Change one thing: {setting}{change.what}", indent="")
    _print_wrapped(f"Watch: {', '.join(change.watch)}.", indent="")


def _print_wrapped(sentence: str, indent: str = "   ") -> None:
    """Print a sentence in the width of the text; a command that may be copied stays on one line."""
    if sentence.startswith("llmshed "):
        typer.echo(indent + sentence)
        return
    typer.echo(textwrap.fill(sentence, COLUMNS, initial_indent=indent, subsequent_indent=indent))


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
