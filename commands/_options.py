"""Options that several verbs share, and what they turn into."""

import os
from pathlib import Path
from typing import Annotated

import typer

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        show_default=False,
        help="Configuration; default: ./llmshed.toml, else the user's, else /etc/llmshed/llmshed.toml.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        show_default=False,
        help="Set one setting, as in --set server.listen=127.0.0.1:8081; may be repeated; wins over all else.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def config_path(given: Path | None) -> Path:
    """Return the configuration that was named, or the first that is found where one is looked for.

    Raises:
        ConfigError: none was named and none is found.
    """
    from llmshed.gateway.config_file import find_config

    return find_config(os.environ, Path()) if given is None else given


def overrides(settings: list[str] | None) -> dict[str, str]:
    """Split the values of `--set`; the last one of a path wins.

    Raises:
        typer.BadParameter: a value without an equals sign.
    """
    pairs = {}
    for setting in settings or ():
        path, sign, value = setting.partition("=")
        if not sign:
            raise typer.BadParameter(f"{setting!r}: must be PATH=VALUE, as in server.listen=127.0.0.1:8081")
        pairs[path.strip()] = value.strip()
    return pairs
