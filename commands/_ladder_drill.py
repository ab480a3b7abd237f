"""`llmshed ladder drill`: what each degraded path of a pool is worth, by an evaluation set."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llmshed.errors import ExitCode

from ._options import JsonOption
from ._output import print_note

if TYPE_CHECKING:
    from llmshed.drilling.terms import Terms

    from ._gateway import Gateway
    from ._ladder_drill_run import EvaluationSet

DRILL_PATH = "/admin/ladder/drill"


def drill(
    set_file: Annotated[
        str | None,
        typer.Option("--set", metavar="FILE", show_default=False, help="Evaluation set, a case a line; - for stdin."),
    ] = None,
    gateway: Annotated[
        str, typer.Option(metavar="URL", help="Gateway to drill, by its admin or its data listener.")
    ] = "http://127.0.0.1:9901",
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default=False, help="File with the admin token of that gateway.")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default=False, help="File with a tenant's key to send.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="URL", show_default=False, help="Data listener; default: the one that the gateway tells."),
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default=False, help="Pool to drill, where several have a ladder."),
    ] = None,
    rung: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", show_default=False, help="Drill this rung alone; may be repeated."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="File of results; default: the ladder's `evaluations`."),
    ] = None,
    cases_out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Write a JSON line for each case on each path."),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=256, metavar="N", help="Cases at a time.")] = 1,
    timeout: Annotated[
        float, typer.Option(min=1, max=3600, metavar="SECONDS", help="Longest that an answer may take.")
    ] = 120.0,
    allow_commands: Annotated[bool, typer.Option("--allow-commands", help="Run the programs of `scorer`.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Send nothing; show what earlier drills found.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before sending.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Send an evaluation set through the primary and each degraded path, and tell what the degraded answers lose.

    Its requests choose their path by themselves; they are real work for the replicas, but move no rung. Ends with 78
    where a path loses more than its rung's largest_quality_gap, with 12 where too little was answered to tell.

    Example: llmshed ladder drill --set questions.jsonl --pool main --yes
    """
    from ._gateway import Gateway
    from ._ladder_drill_run import Wishes, check_places, keep, place_of_results, read_results, run_drill, the_set
    from ._ladder_drill_told import show_drills, verdict_code

    if show == (set_file is not None):
        raise typer.BadParameter("give either --set FILE or --show")
    cases = None if set_file is None else the_set(set_file, allow_commands=allow_commands)
    asked = Gateway(gateway, token_file)
    terms = _terms(asked, pool).only(rung or ())
    place = place_of_results(output, terms)
    results = read_results(place)
    if cases is not None:
        check_places(place, cases_out)
        _ask_leave(cases, terms, place, yes=yes)
        wishes = Wishes(cases, data, key_file, concurrency, timeout, cases_out, quiet)
        newest = run_drill(wishes, terms, lambda: _terms(asked, pool))
        results = read_results(place).with_newest(newest)  # read anew: another drill may have ended meanwhile
        keep(place, results)
    show_drills(results, terms, place, as_json=as_json)
    if cases is not None:
        raise typer.Exit(verdict_code(results.drills[0], terms))


def _terms(asked: "Gateway", pool: str | None) -> "Terms":
    from llmshed.drilling.terms import Terms

    return Terms.read(asked.post(DRILL_PATH, {} if pool is None else {"pool": pool}))


def _ask_leave(cases: "EvaluationSet", terms: "Terms", place: Path | None, *, yes: bool) -> None:
    """Tell what will be sent, and ask whether it shall be.

    Raises:
        typer.BadParameter: nobody can be asked.
        typer.Exit: the answer was no.
    """
    requests = len(cases.cases) * len(terms.paths)
    if terms.in_force:
        print_note(f"in force on pool {terms.pool}: {', '.join(terms.in_force)}; what they refuse has no result")
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter("nobody can be asked here: add --yes")
    kept = "" if place is None else f", and keep the results in {place}"
    if not typer.confirm(f"Send {requests:,} requests to pool {terms.pool}{kept}?", err=True):
        raise typer.Exit(ExitCode.INTERRUPTED)
