"""Checking a configuration and the files that it names: `config check` and `serve --check`."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

import typer

from llmshed.errors import ConfigError, ExitCode

from ._output import print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from llmshed.config.loading import LoadedConfig

SCHEMA = "llmshed.config_check/1"


def check_and_exit(read: "Callable[[], LoadedConfig]", *, as_json: bool) -> NoReturn:
    """Tell every mistake of what `read` returns or raises, a line each on stderr, and end with 0 or 78."""
    from llmshed.gateway.daemon.references import reference_doubts, reference_problems

    source: str | None = None
    warnings: tuple[str, ...] = ()
    try:
        loaded = read()
        source, warnings = loaded.source, loaded.warnings
        problems = reference_problems(loaded.config)
        if not problems:
            warnings += tuple(reference_doubts(loaded.config, datetime.now(UTC).date()))
    except ConfigError as error:
        problems = error.problems
    if as_json:
        print_json(SCHEMA, {"file": source, "valid": not problems, "problems": problems, "warnings": warnings})
    else:
        for line in (*problems, *(f"warning: {warning}" for warning in warnings)):
            typer.echo(line, err=True)
        if not problems:
            typer.echo(f"{source}: valid")
    raise typer.Exit(ExitCode.CONFIG if problems else ExitCode.OK)
