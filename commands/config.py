"""`llmshed config`: check, show and describe the configuration, and draw keys."""

import os
from pathlib import Path
from typing import Annotated

import typer

from . import _options, _output
from ._checking import check_and_exit

app = typer.Typer(
    help="Check and show the configuration, print its schema, draw keys.", no_args_is_help=True, rich_markup_mode=None
)


@app.command(short_help="Check a configuration and its files.")
def check(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", show_default=False, help="Configuration; default: as for serve.")
    ] = None,
    config: _options.ConfigOption = None,
    settings: _options.SetOption = None,
    as_json: _options.JsonOption = False,
) -> None:
    """Check a configuration and the files that it names: exit code 0, or 78 with every mistake on standard error.

    Example: llmshed config check /etc/llmshed/llmshed.toml
    """
    from llmshed.gateway.config_file import read_config

    if file is not None and config is not None:
        raise typer.BadParameter("FILE and --config FILE name the same; give one of them")
    overrides = _options.overrides(settings)
    check_and_exit(lambda: read_config(_options.config_path(file or config), os.environ, overrides), as_json=as_json)


@app.command(short_help="Show every setting in force.")
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


@app.command(short_help="Print the JSON schema of llmshed.toml.")
def schema(
    profile: Annotated[bool, typer.Option("--profile", help="Print the schema of profiles instead.")] = False,
    ladder: Annotated[bool, typer.Option("--ladder", help="Print the schema of ladders instead.")] = False,
    as_json: _options.JsonOption = False,
) -> None:
    """Print the JSON schema of llmshed.toml, for editors.

    Example: llmshed config schema > llmshed.schema.json, and `#:schema ./llmshed.schema.json` in the first line.
    """
    import orjson

    from llmshed.config.display import json_schema
    from llmshed.config.settings import Config
    from llmshed.ladder.model import Ladder
    from llmshed.profile import Profile

    if profile and ladder:
        raise typer.BadParameter("--profile or --ladder: one schema is printed at a time")
    if ladder:
        described = json_schema(Ladder, "llmshed ladder")
    else:
        described = json_schema(Profile, "llmshed profile") if profile else json_schema(Config, "llmshed.toml")
    if as_json:
        _output.print_json("llmshed.config_schema/1", {"json_schema": described})
    else:
        typer.echo(orjson.dumps(described, option=orjson.OPT_INDENT_2).decode())


@app.command(short_help="Draw a fresh key and its digest.")
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
