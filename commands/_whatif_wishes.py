"""What `llmshed whatif` is asked for, as it is typed, checked before anything is read."""

import math
import re
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from llmshed.workload.arrivals import ArrivalProcess

MOST_SCALES = 20
MOST_COPIES = 1000
LEAST_SCALE, MOST_SCALE = 0.01, 100.0
ALL = "all"

_COPIES = re.compile(r"x([1-9][0-9]{0,8})", re.ASCII)
_SCALE = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3})?x?", re.ASCII)  # so few digits that every one is shown everywhere


def read_scales(text: str) -> tuple[float, ...]:
    """Return the scales of `1,2,5,10`, in the order given.

    Raises:
        typer.BadParameter: one is no number, out of range or there twice, or there are too many.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > MOST_SCALES:
        raise typer.BadParameter(f"--scale: {len(parts)} scales; at most {MOST_SCALES} are accepted")
    scales = tuple(_scale(part) for part in parts)
    twice = next((scale for scale in scales if scales.count(scale) > 1), None)
    if twice is not None:
        raise typer.BadParameter(f"--scale: {twice:g} stands there twice")
    return scales


def _scale(text: str) -> float:
    value = float(text.removesuffix("x")) if _SCALE.fullmatch(text) else math.nan
    if not LEAST_SCALE <= value <= MOST_SCALE:
        raise typer.BadParameter(
            f"--scale {text!r}: numbers from {LEAST_SCALE:g} to {MOST_SCALE:g} with at most three decimals and with"
            " commas between are needed, as in 1,2.5,10"
        )
    return value


def read_arrivals(text: str) -> "ArrivalProcess | None":
    """Return how requests come; None for as the trace says.

    Raises:
        typer.BadParameter: it is none of the known ways.
    """
    from llmshed.workload.arrivals import arrival_process

    try:
        return arrival_process(text)
    except ValueError as error:
        raise typer.BadParameter(f"--arrivals {text!r}: {error}") from None


def read_copies(replicas: list[str], copies: list[str]) -> int:
    """Return how many replicas there are of the one kind that is named.

    Raises:
        typer.BadParameter: the number is not typed as `x4`, or there are several kinds of replicas or several numbers.
    """
    counts = [_copies(text) for text in copies]
    if len(replicas) > 1:
        raise typer.BadParameter(
            f"--replica: {len(replicas)} kinds are named; all replicas of a run are of one kind, so one is accepted"
        )
    if len(counts) > 1:
        raise typer.BadParameter(f"COPIES: {' '.join(copies)}: one number is accepted, as in x4")
    return counts[0] if counts else 1


def _copies(text: str) -> int:
    typed = _COPIES.fullmatch(text)
    if typed is None or int(typed[1]) > MOST_COPIES:
        raise typer.BadParameter(f"COPIES {text!r}: x and a number from 1 to {MOST_COPIES} is needed, as in x4")
    return int(typed[1])


def check_standard_input(trace: str, replicas: list[str]) -> None:
    """See that standard input is asked for one thing only.

    Raises:
        typer.BadParameter: it is to be the trace and the replica.
    """
    if trace == "-" and "-" in replicas:
        raise typer.BadParameter("--trace -, --replica -: standard input can be one of them; name a file for the other")


def read_policies(names: list[str], known: "Iterable[str]") -> tuple[str, ...]:
    """Return the policies to run, each once, in the order in which they were named; `all` stands for every one.

    Raises:
        typer.BadParameter: a name is of none of them.
    """
    table = tuple(known)
    chosen: dict[str, None] = {}
    for name in names:
        if name != ALL and name not in table:
            raise typer.BadParameter(f"--policy {name!r}: accepted are {', '.join(table)} and {ALL}")
        chosen.update(dict.fromkeys(table if name == ALL else (name,)))
    return tuple(chosen)
