"""`llmshed profile`: show, check, compare, find and verify profiles of replicas."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _options, _output, _profile_verify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llmshed.config.pools import PoolSettings
    from llmshed.profile import Profile

app = typer.Typer(
    help="Show, check, compare, find and verify profiles of replicas.", no_args_is_help=True, rich_markup_mode=None
)

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", show_default=False, help="Profile; `simulated`: the one that ships.")
]


@app.command(short_help="Show a profile.")
def show(file: FileArgument, as_json: _options.JsonOption = False) -> None:
    """Show every field of a profile, and what follows from it.

    Example: llmshed profile show llama-8b-l4.toml
    """
    from llmshed.profile.differences import fields_of

    from ._profile_files import read

    profile = read(file)
    derived = _derived(profile)
    if as_json:
        body = profile.model_dump(mode="json", by_alias=True)
        _output.print_json("llmshed.profile_show/1", {"file": file, **derived, "profile": body})
        return
    told = {name: value for name, value in (derived | fields_of(profile)).items() if value is not None}
    _output.print_table({"profile": profile.label, "file": file, **told})


@app.command(short_help="Find fault with profiles.")
def check(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", show_default=False, help="Profiles; `simulated`: the one that ships.")
    ],
    max_age_days: Annotated[int, typer.Option("--max-age-days", min=0, help="Oldest measurement that passes.")] = 90,
    as_json: _options.JsonOption = False,
) -> None:
    """Check profiles: exit code 0, or 78 with every mistake, contradiction and measurement that is too old.

    Example: llmshed profile check /etc/llmshed/profiles/*.toml
    """
    from llmshed.errors import ExitCode, ProfileError
    from llmshed.profile.soundness import doubts, problems

    from ._profile_files import read

    results: list[dict[str, Any]] = []
    for file in files:
        try:
            profile = read(file)
        except ProfileError as error:
            results.append({"file": file, "profile": None, "problems": str(error).splitlines(), "warnings": []})
            continue
        wrong = [f"{file}: {problem}" for problem in problems(profile, _today(), max_age_days)]
        doubtful = [f"{file}: {doubt}" for doubt in doubts(profile)]
        results.append({"file": file, "profile": profile.label, "problems": wrong, "warnings": doubtful})
    broken = any(result["problems"] for result in results)
    if as_json:
        _output.print_json("llmshed.profile_check/1", {"valid": not broken, "files": results})
    else:
        for result in results:
            for line in (*result["problems"], *(f"warning: {warning}" for warning in result["warnings"])):
                typer.echo(line, err=True)
            if not result["problems"]:
                typer.echo(f"{result['file']}: {result['profile']}: sound")
    raise typer.Exit(ExitCode.CONFIG if broken else ExitCode.OK)


@app.command(short_help="Compare two profiles.")
def diff(
    one: Annotated[str, typer.Argument(metavar="A", show_default=False, help="A profile.")],
    other: Annotated[str, typer.Argument(metavar="B", show_default=False, help="Another one.")],
    as_json: _options.JsonOption = False,
) -> None:
    """Show the fields in which two profiles differ, and which of them change what is admitted.

    Example: llmshed profile diff before.toml after.toml
    """
    from llmshed.profile.differences import differences

    from ._profile_files import read

    before, after = read(one), read(other)
    found = list(differences(before, after))
    if as_json:
        told = [{"field": d.field, "a": d.one, "b": d.other, "use": d.use} for d in found]
        _output.print_json("llmshed.profile_diff/1", {"a": before.label, "b": after.label, "differences": told})
    elif found:
        rows = [(d.field, _shown(d.one), _shown(d.other), d.use) for d in found]
        _output.print_grid(f"{before.label} and {after.label}", ("field", "A", "B", "for"), rows)
    else:
        typer.echo(f"{one} and {other} are the same")


@app.command("list", short_help="Find profiles.")
def list_(
    config: _options.ConfigOption = None,
    settings: _options.SetOption = None,
    as_json: _options.JsonOption = False,
) -> None:
    """List the profiles that the configuration's pools use, others beside it, and the one that ships.

    Example: llmshed profile list --config /etc/llmshed/llmshed.toml
    """
    from llmshed.errors import ConfigError
    from llmshed.gateway.config_file import read_config

    from ._profile_files import search

    pairs = _options.overrides(settings)
    pools: Sequence[PoolSettings] = ()
    try:
        file = _options.config_path(config)
    except ConfigError:
        if pairs:
            raise
        folder = Path()  # without a configuration no pool uses any
    else:
        folder, pools = file.parent, read_config(file, os.environ, pairs).config.pools
    found = list(search((folder, folder / "profiles"), pools))
    if as_json:
        rows = [
            {
                "file": one.place,
                "pools": one.pools,
                "profile": None if one.profile is None else one.profile.label,
                **({} if one.profile is None else _derived(one.profile)),
                "problem": one.problem or None,
            }
            for one in found
        ]
        _output.print_json("llmshed.profile_list/1", {"profiles": rows})
        return
    table = [
        (
            "broken" if one.profile is None else one.profile.label,
            "-" if one.profile is None else one.profile.budget.basis,
            "-" if one.profile is None else f"{one.profile.budget.gross_ceiling_tokens:,}",
            _shown(None if one.profile is None else _derived(one.profile)["age_days"]),
            ", ".join(one.pools) or "-",
            one.place,
        )
        for one in found
    ]
    _output.print_grid("Profiles", ("profile", "basis", "gross ceiling", "days old", "pools", "file"), table)
    for one in found:
        if one.problem:
            _output.print_note(one.problem)


app.command(short_help="See whether a profile holds on a replica.")(_profile_verify.verify)


def _derived(profile: "Profile") -> dict[str, Any]:
    from llmshed.admission.settings import profile_budget
    from llmshed.profile.thresholds import profile_thresholds_version

    measured_on = profile.fingerprint.date
    return {
        "safe_budget_tokens": profile_budget(profile).safe_budget_tokens,
        "thresholds_version": profile_thresholds_version(profile),
        "age_days": None if measured_on is None else (_today() - measured_on).days,
    }


def _today() -> Any:
    import datetime as dt

    return dt.datetime.now(dt.UTC).date()


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if type(value) is int else str(value)
