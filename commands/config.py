"""`llmshed config`."""

import typer

app = typer.Typer()
