"""`llmshed ladder`: the agreed steps by which pools degrade, looked at, held and given up."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llmshed.errors import ExitCode

from . import _output
from ._ladder_drill import drill
from ._options import JsonOption
from ._spans import read_span, written_span

if TYPE_CHECKING:
    from ._gateway import Gateway

app = typer.Typer(
    help="Show, check, hold and drill the agreed steps by which pools degrade.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("drill", short_help="Measure what degraded answers lose.")(drill)

GatewayOption = Annotated[
    str, typer.Option("--gateway", metavar="URL", help="Gateway to ask, by its admin or its data listener.")
]
TokenOption = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", show_default=False, help="File with the admin token of that gateway."),
]
PoolOption = Annotated[
    str | None,
    typer.Option("--pool", metavar="NAME", show_default=False, help="Pool, where several have a ladder."),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]
ADMIN = "http://127.0.0.1:9901"
LEAST_SECONDS, MOST_SECONDS = 60, 7 * 86_400
"""How long a rung may be held."""


@app.command(short_help="Show where pools stand.")
def status(gateway: GatewayOption = ADMIN, token_file: TokenOption = None, as_json: JsonOption = False) -> None:
    """Show where every pool stands on its ladder: by the rule, by hand, and why.

    Example: llmshed ladder status --gateway http://127.0.0.1:9901
    """
    from ._ladder_told import status_lines

    told = _gateway(gateway, token_file).get("/admin/ladder")
    if as_json:
        _print_json(told)
        return
    typer.echo("\n".join(status_lines(told)))


@app.command(short_help="Find fault with ladder files.")
def check(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", show_default=False, help="Ladders; `source`, `full`: those that ship."),
    ],
    as_json: JsonOption = False,
) -> None:
    """Check ladders: exit code 0, or 78 with every mistake, and with what is missing or out of date.

    Example: llmshed ladder check ladder.toml
    """
    from llmshed.errors import LadderError
    from llmshed.gateway.ladders.files import read_ladder
    from llmshed.ladder.soundness import problems, warnings

    today = datetime.now(UTC).date()
    results: list[dict[str, Any]] = []
    for file in files:
        try:
            ladder = read_ladder(file)
        except LadderError as error:
            results.append({"file": file, "ladder": None, "problems": str(error).splitlines(), "warnings": []})
            continue
        wrong = [f"{file}: {problem}" for problem in problems(ladder, today)]
        doubtful = [f"{file}: {doubt}" for doubt in warnings(ladder, today)]
        results.append({"file": file, "ladder": ladder.label, "problems": wrong, "warnings": doubtful})
    broken = any(result["problems"] for result in results)
    if as_json:
        _output.print_json("llmshed.ladder_check/1", {"valid": not broken, "files": results})
    else:
        for result in results:
            for line in (*result["problems"], *(f"warning: {warning}" for warning in result["warnings"])):
                typer.echo(line, err=True)
            if not result["problems"]:
                typer.echo(f"{result['file']}: {result['ladder']}: sound")
    raise typer.Exit(ExitCode.CONFIG if broken else ExitCode.OK)


@app.command(short_help="Hold a rung by hand.")
def trigger(
    rung: Annotated[str, typer.Argument(metavar="RUNG", show_default=False, help="Name of the rung.")],
    *,
    span: Annotated[str, typer.Option("--for", metavar="SPAN", help="For how long, as in 90s, 15m or 1h30m.")] = "15m",
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", show_default=False, help="Why; it is written down.")
    ],
    pool: PoolOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what it would have done to the last ten minutes; hold nothing.")
    ] = False,
    yes: YesOption = False,
    gateway: GatewayOption = ADMIN,
    token_file: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold a rung on a pool for a time: it and all below are in force, whatever the rule says.

    Example: llmshed ladder trigger stop-bulk --for 30m --reason 'launch at noon' --dry-run
    """
    from ._ladder_told import rehearsal_lines, trigger_lines

    seconds = read_span("--for", span, LEAST_SECONDS, MOST_SECONDS)
    asked = _gateway(gateway, token_file)
    wish = {"rung": rung, "for_seconds": seconds, "reason": reason} | ({} if pool is None else {"pool": pool})
    would = asked.post("/admin/ladder/trigger", {**wish, "dry_run": True})
    if dry_run:
        if as_json:
            _print_json(would)
        else:
            typer.echo("\n".join(rehearsal_lines(would)))
        return
    _ask(f"Hold rung {would['rung']} on pool {would['pool']} for {written_span(seconds)}?", yes=yes)
    told = asked.post("/admin/ladder/trigger", {**wish, "pool": would["pool"]})
    for warning in told["warnings"]:
        _output.print_note(warning)
    if as_json:
        _print_json(told)
    else:
        typer.echo("\n".join(trigger_lines(told)))


@app.command(short_help="Give up what is held by hand.")
def release(
    *,
    pool: PoolOption = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", show_default=False, help="Why; it is written down.")
    ] = None,
    yes: YesOption = False,
    gateway: GatewayOption = ADMIN,
    token_file: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give up the rung that is held on a pool: it is at once where the rule alone stands.

    Example: llmshed ladder release --reason 'launch is over' --yes
    """
    from ._ladder_told import release_lines

    asked = _gateway(gateway, token_file)
    if any(one.get("hold") for one in asked.get("/admin/ladder")["pools"] if pool in {None, one["pool"]}):
        _ask(f"Give up what is held on {'the pool' if pool is None else f'pool {pool}'}?", yes=yes)
    wish = {name: text for name, text in (("pool", pool), ("reason", reason)) if text is not None}
    told = asked.post("/admin/ladder/release", wish)
    if as_json:
        _print_json(told)
    else:
        typer.echo("\n".join(release_lines(told)))


@app.command(short_help="Show what was done, newest first.")
def history(
    *,
    number: Annotated[int, typer.Option("--number", "-n", metavar="N", min=1, max=1000, help="Entries at most.")] = 20,
    gateway: GatewayOption = ADMIN,
    token_file: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the steps of the rule and the acts of people, newest first.

    Example: llmshed ladder history -n 50
    """
    from ._ladder_told import history_lines

    told = _gateway(gateway, token_file).get(f"/admin/ladder/history?n={number}")
    if as_json:
        _print_json(told)
        return
    typer.echo("\n".join(history_lines(told)))


def _gateway(url: str, token_file: Path | None) -> "Gateway":
    from ._gateway import Gateway

    return Gateway(url, token_file)


def _print_json(told: dict[str, Any]) -> None:
    """Print what a gateway answered, its own schema first."""
    _output.print_json(str(told["schema"]), {name: value for name, value in told.items() if name != "schema"})


def _ask(question: str, *, yes: bool) -> None:
    """Let the person at the terminal confirm an act; without a terminal only `--yes` does.

    Raises:
        typer.BadParameter: nobody can be asked.
        typer.Exit: the answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal to ask at; give --yes to go on without a question")
    if not typer.confirm(question, err=True):
        _output.print_note("nothing was done")
        raise typer.Exit(ExitCode.OK)
