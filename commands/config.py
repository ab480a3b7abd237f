"""`llmshed config`: check, show and describe the configuration, and draw keys."""

import os
from pathlib import Path
from typing import Annotated

import typer

from llmshed.errors import ConfigError, ExitCode

from . import _options, _output

app = typer.Typer(
    help="Check and show the configuration, print its schema, draw keys.", no_args_is_help=True, rich_markup_mode=None
)


@app.command()
def check(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", show_default=False, help="Configuration; default: as for serve.")
    ] = None,
    settings: _options.SetOption = None,
    as_json: _options.JsonOption = False,
) -> None:
    """Check a configuration and the files that it names: exit code 0, or 78 with every mistake on standard error.

    Example: llmshed config check /etc/llmshed/llmshed.toml
    """
    from llmshed.gateway.config_file import read_config
    from llmshed.gateway.daemon.references import reference_problems

    path = _options.config_path(file)
    warnings: tuple[str, ...] = ()
    try:
        loaded = read_config(path, os.environ, _options.overrides(settings))
        problems, warnings = reference_problems(loaded.config), loaded.warnings
    except ConfigError as error:
        problems = error.problems
    if as_json:
        result = {"file": str(path), "valid": not problems, "problems": problems, "warnings": warnings}
        _output.print_json("llmshed.config_check/1", result)
    else:
        for line in problems:
            typer.echo(line, err=True)
        for line in warnings:
            typer.echo(f"warning: {line}", err=True)
        if not problems:
            typer.echo(f"{path}: valid")
    raise typer.Exit(ExitCode.CONFIG if problems else ExitCode.OK)


@app.command()
def show(
    config: _options.ConfigOption = None,
    settings: _options.SetOption = None,
    origin: Annotated[bool, typer.Option("--origin", help="Tell where each value came from.")] = False,
    as_json: _options.JsonOption = False,
) -> None:
    """Show every setting in force, as TOML that could be a configuration itself.

    Example: llmshed config show --origin
    """
    from llmshed.config.display import all_origins, as_toml
    from llmshed.gateway.config_file import read_config

    loaded = read_config(_options.config_path(config), os.environ, _options.overrides(settings))
    if as_json:
        result = {"file": loaded.source, "config": loaded.config.model_dump(mode="json"), "warnings": loaded.warnings}
        _output.print_json("llmshed.config/1", result | ({"origins": all_origins(loaded)} if origin else {}))
    else:
        typer.echo(as_toml(loaded, origins=origin), nl=False)


@app.command()
def schema(
    profile: Annotated[bool, typer.Option("--profile", help="Print the schema of profiles instead.")] = False,
    as_json: _options.JsonOption = False,
) -> None:
    """Print the JSON schema of llmshed.toml, for editors.

    Example: llmshed config schema > llmshed.schema.json, and `#:schema ./llmshed.schema.json` in the first line.
    """
    import orjson

    from llmshed.config.display import json_schema
    from llmshed.config.settings import Config
    from llmshed.profile import Profile

    described = json_schema(Profile, "llmshed profile") if profile else json_schema(Config, "llmshed.toml")
    if as_json:
        _output.print_json("llmshed.config_schema/1", {"json_schema": described})
    else:
        typer.echo(orjson.dumps(described, option=orjson.OPT_INDENT_2).decode())


@app.command()
def key(as_json: _options.JsonOption = False) -> None:
    """Draw a fresh key: its first line is for the client, its second for a keys file. It is stored nowhere.

    Example: llmshed config key
    """
    import hashlib
    import secrets

    drawn = "llmshed-" + secrets.token_urlsafe(32)  # 256 bits
    digest = f"sha256:{hashlib.sha256(drawn.encode()).hexdigest()}"
    if as_json:
        _output.print_json("llmshed.key/1", {"key": drawn, "digest": digest})
    else:
        typer.echo(f"{drawn}\n{digest}")
