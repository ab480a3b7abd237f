"""`llmshed dashboard`: a dashboard for Grafana."""

import typer


def dashboard() -> None:
    """Print a dashboard for Grafana, in the order in which an overload occurs; the data source is chosen there.

    Example: llmshed dashboard > llmshed.dashboard.json
    """
    import orjson

    from llmshed.monitoring.dashboard import dashboard as drawn

    typer.echo(orjson.dumps(drawn(), option=orjson.OPT_INDENT_2))
