"""One result, two readers: a table for people or one JSON object for machines, never mixed; notes beside either."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer


def print_json(schema: str, result: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout, `schema` first; fields may be added later, none change meaning.

    JSON is UTF-8 whatever the locale says, so it is written as bytes.
    """
    import orjson

    typer.echo(orjson.dumps({"schema": schema, **result}, option=orjson.OPT_INDENT_2))


def print_table(rows: Mapping[str, object]) -> None:
    """Print names and values as two columns on stdout: folded to a terminal's width, elsewhere one line a row."""
    shown = {name: f"{value:,}" if type(value) is int else str(value) for name, value in rows.items()}
    if not sys.stdout.isatty():
        width = max(map(len, shown))
        typer.echo("\n".join(f"{name:<{width}}  {value}" for name, value in shown.items()))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in shown.items():
        table.add_row(name, value)
    console = Console(highlight=False)
    with console.capture() as printed:
        console.print(table)
    # rich pads each line to the table's width, which a pipe or a file would keep.
    typer.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))


def print_grid(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> None:
    """Print a table with a caption on stdout, an empty line before it: the first column to the left, figures right."""
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    typer.secho(f"\n{caption}", bold=True)  # plain where there is no terminal
    for row in (columns, *rows):
        first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join((row[0].ljust(len(first)), *rest)).rstrip())
    if note:
        typer.echo(note)


def print_note(sentence: str) -> None:
    """Tell something beside the result: one line on stderr, which begins with the program's name."""
    typer.echo(f"llmshed: {sentence}", err=True)
