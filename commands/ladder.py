"""`llmshed ladder`: the agreed steps by which pools degrade."""

import typer

from ._ladder_drill import drill

app = typer.Typer(help="Drill the agreed steps by which pools degrade.", no_args_is_help=True, rich_markup_mode=None)
app.command("drill", short_help="Measure what degraded answers lose.")(drill)
