"""`llmshed serve`: the gateway itself."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import _options
from ._checking import check_and_exit

if TYPE_CHECKING:
    from collections.abc import Callable

    from llmshed.config.loading import LoadedConfig


def serve(
    config: _options.ConfigOption = None,
    settings: _options.SetOption = None,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", show_default=False, help="Where requests come in; default 127.0.0.1:8080."),
    ] = None,
    admin_listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT|unix:/PATH", show_default=False, help="Where operators come in; default 127.0.0.1:9901."
        ),
    ] = None,
    replica: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL", show_default=False, help="Engine to serve, instead of the first pool's; may be repeated."
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Check the configuration and its files, and exit.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the open addresses, or what --check found, as one JSON object.")
    ] = False,
) -> None:
    """Admit, relay and shed requests in front of LLM servers until SIGTERM.

    Without a configuration, a simulated replica inside the process is served. SIGTERM drains, a second signal ends at
    once; SIGHUP reads the configuration again, SIGUSR1 writes the state to the log.

    Example: llmshed serve --replica http://10.0.0.7:8080
    """
    overrides = _options.overrides(settings)
    if listen is not None:
        overrides["server.listen"] = listen
    if admin_listen is not None:
        overrides["server.admin_listen"] = admin_listen
    if replica:
        overrides["pools[0].replicas"] = _replicas(replica)
    read = _reader(config, overrides)
    if check:
        check_and_exit(read, as_json=as_json)
    from ._serving import serve_until_stopped

    serve_until_stopped(read, as_json=as_json)


def _replicas(urls: list[str]) -> str:
    """Return the replicas as the value of a setting; JSON's strings are TOML's too."""
    import json

    tables = (f"{{name = {json.dumps(f'replica-{n}')}, url = {json.dumps(url)}}}" for n, url in enumerate(urls, 1))
    return f"[{', '.join(tables)}]"


def _reader(given: Path | None, overrides: dict[str, str]) -> "Callable[[], LoadedConfig]":
    """Return what reads the configuration: the file that is named or found, or a simulated replica without any.

    Raises:
        ConfigError: the environment points to no usable place.
    """
    from llmshed.config.loading import load_config
    from llmshed.errors import ConfigError
    from llmshed.gateway.config_file import find_config, read_config

    if given is None:
        try:
            given = find_config(os.environ, Path.cwd())
        except ConfigError:
            return lambda: load_config(_SIMULATED, _NO_FILE, os.environ, overrides)
    path = given
    return lambda: read_config(path, os.environ, overrides)


_NO_FILE = "(none found: a SIMULATED replica answers)"
_SIMULATED = """
[[pools]]
[[pools.replicas]]
name = "simulated"
url = "simulated:"
"""
