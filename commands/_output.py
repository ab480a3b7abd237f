"""One result, two readers: a table for people or one JSON object for machines, never mixed."""

from collections.abc import Mapping
from typing import Any

import typer


def print_json(schema: str, result: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout, `schema` first; fields may be added later, none change meaning."""
    import orjson

    typer.echo(orjson.dumps({"schema": schema, **result}, option=orjson.OPT_INDENT_2).decode())


def print_table(rows: Mapping[str, object]) -> None:
    """Print names and values as two columns on stdout; plain text wherever stdout is not a terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
    Console(highlight=False).print(table)
