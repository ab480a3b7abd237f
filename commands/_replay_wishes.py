"""What `llmshed replay` is asked for, as it is typed, checked before anything is read or sent."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ._address import read_address

if TYPE_CHECKING:
    from llmshed.workload.arrivals import ArrivalProcess


@dataclass(frozen=True, slots=True)
class Pace:
    """When requests come.

    Args:
        process: how the gaps are; None for as the trace says.
        rate_per_second: how many come a second; None for as many as the trace has.
        speed: factor on the trace's own arrivals.
    """

    process: "ArrivalProcess | None"
    rate_per_second: float | None
    speed: float


def read_pace(arrivals: str | None, rate: float | None, speed: float | None) -> Pace:
    """Return when requests are to come.

    Raises:
        typer.BadParameter: the process is unknown, or options contradict each other.
    """
    from llmshed.workload.arrivals import arrival_process

    name = arrivals or ("trace" if rate is None else "poisson")
    try:
        process = arrival_process(name)
    except ValueError as error:
        raise typer.BadParameter(f"--arrivals {name!r}: {error}") from None
    if process is None and rate is not None:
        raise typer.BadParameter("--rate sets how many requests come; the trace's own arrivals take --speed")
    if process is not None and speed is not None:
        raise typer.BadParameter("--speed is a factor on the trace's own arrivals; others take --rate")
    return Pace(process, rate, 1.0 if speed is None else speed)


def check_wishes(source: str | None, to: str | None, output: Path | None, samples: Path | None) -> tuple[str, str]:
    """Return the source and the address.

    Raises:
        typer.BadParameter: one is missing, the address is none, an option of --sanitize is there, or the samples would
            go to the source or to no file.
    """
    if source is None or to is None:
        missing = "SOURCE" if source is None else "--to URL"
        raise typer.BadParameter(f"{missing} is missing: what is sent, and where to? Or --sanitize LOG --output FILE")
    if output is not None:
        raise typer.BadParameter("--output is where --sanitize writes; the times of every try go to --samples FILE")
    if samples is not None and str(samples) == "-":
        raise typer.BadParameter("--samples -: the name of a file is needed; standard output has the results")
    if samples is not None and samples.exists() and Path(source).exists() and samples.samefile(source):
        raise typer.BadParameter(f"--samples {samples}: that is the source itself; name another file")
    return source, read_address("--to", to)


SANITIZES = frozenset({"sanitize", "output", "quiet", "as_json"})
"""Parameters of a run that sends nothing; all others are of one that does."""


def typed(context: typer.Context) -> list[str]:
    """Return what was typed of a run that sends, by the names that people type."""
    return [
        param.opts[0] if param.opts[0].startswith("-") else param.opts[0].upper()
        for param in context.command.params
        if param.name is not None and param.name not in SANITIZES and _was_typed(context, param.name)
    ]


def _was_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def check_sanitize(log: str, output: Path | None, sending: list[str]) -> tuple[str, Path]:
    """Return the log and the file to write.

    Args:
        log: the log.
        output: the file.
        sending: what was typed beside them, of a run that sends.

    Raises:
        typer.BadParameter: the file is missing, or the log itself, or something was typed that nothing comes of.
    """
    if sending:
        belong = "belongs" if len(sending) == 1 else "belong"
        raise typer.BadParameter(f"--sanitize sends nothing: {', '.join(sending)} {belong} to a run of its own")
    if output is None or str(output) in {"-", ""}:
        raise typer.BadParameter("--sanitize needs --output FILE, which is read again afterwards")
    if log == "-":
        raise typer.BadParameter("--sanitize -: the log is read twice, so the name of a file is needed")
    if output.exists() and Path(log).exists() and output.samefile(log):
        raise typer.BadParameter(f"--output {output}: that is the log itself; name another file")
    return log, output
