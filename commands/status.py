"""`llmshed status`: a first look at a running gateway."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llmshed.errors import ExitCode

from ._options import JsonOption
from ._output import print_json

if TYPE_CHECKING:
    from ._gateway import Gateway

SCHEMA = "llmshed.status/1"
EVERY_SECONDS = 2.0
"""How often `--watch` looks."""


def status(
    gateway: Annotated[
        str, typer.Option(metavar="URL", help="Gateway to ask, by its admin or its data listener.")
    ] = "http://127.0.0.1:9901",
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the admin token of that gateway.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Look again every two seconds until interrupted.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell whether a running gateway is ready, what its replicas and queues hold, and what it refuses.

    Exits with 0 if it takes requests, 75 if it answers and is not ready, and 69 if nobody answers.

    Example: llmshed status --gateway http://127.0.0.1:9901 --watch
    """
    from ._gateway import Gateway
    from ._status_seen import status_seen

    asked = Gateway(gateway, token_file)
    if watch:
        _watch(asked, as_json=as_json)
        return
    seen = status_seen(asked)
    if as_json:
        print_json(SCHEMA, seen)
    else:
        _print(seen, asked.url)
    raise typer.Exit(ExitCode.OK if seen["ready"] else ExitCode.TEMPORARY)


def _print(seen: dict[str, Any], url: str) -> None:
    from ._status_told import coloured, plain

    if not sys.stdout.isatty():
        typer.echo(plain(seen, url))
        return
    from rich.console import Console

    Console(highlight=False).print(coloured(seen, url))


def _looks(asked: "Gateway") -> Iterator[dict[str, Any]]:
    from ._status_seen import status_seen

    while True:
        yield status_seen(asked)
        time.sleep(EVERY_SECONDS)


def _watch(asked: "Gateway", *, as_json: bool) -> None:
    """Show each look in the place of the one before; off a terminal one after the other."""
    import orjson

    from ._status_told import coloured, plain

    if as_json:
        for seen in _looks(asked):
            typer.echo(orjson.dumps({"schema": SCHEMA, **seen}))
        return
    if not sys.stdout.isatty():
        for seen in _looks(asked):
            typer.echo(f"{plain(seen, asked.url)}\n")
        return
    from rich.live import Live

    with Live(auto_refresh=False) as screen:
        for seen in _looks(asked):
            screen.update(coloured(seen, asked.url), refresh=True)
