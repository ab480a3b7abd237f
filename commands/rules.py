"""`llmshed rules`: recording rules and alerts for Prometheus."""

from typing import Annotated

import typer


def rules(
    objective: Annotated[
        float,
        typer.Option("--objective", min=0.5, max=0.99999, help="Share of interactive requests to meet objectives."),
    ] = 0.99,
    bulk_objective: Annotated[
        float, typer.Option("--bulk-objective", min=0.5, max=0.99999, help="The same of bulk requests.")
    ] = 0.9,
    interval_seconds: Annotated[
        int, typer.Option("--interval", metavar="SECONDS", min=1, max=3600, help="How often rules are evaluated.")
    ] = 30,
) -> None:
    """Print a rule file for Prometheus: recording rules, and alerts with what to do first.

    Example: llmshed rules --objective 0.995 > llmshed.rules.yml
    """
    from llmshed.monitoring.rule_file import rule_file

    typer.echo(rule_file(objective, bulk_objective, f"{interval_seconds}s"), nl=False)
