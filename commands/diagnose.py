"""`llmshed diagnose`: the cause of an overload, in the order in which it occurs."""

import time
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ._address import read_address
from ._options import JsonOption
from ._prometheus_options import (
    DEFAULT_PROMETHEUS,
    AuthorityOption,
    BasicOption,
    BearerOption,
    CertificateOption,
    InsecureOption,
    MatchOption,
    PrometheusOption,
    TimeoutOption,
)
from ._spans import read_span


class Format(StrEnum):
    """What is printed."""

    TABLE = "table"
    JSON = "json"
    NAGIOS = "nagios"


class FailOn(StrEnum):
    """From which finding on the exit code is not 0."""

    WARNING = "warning"
    OVERLOAD = "overload"
    NEVER = "never"


def diagnose(
    prometheus: PrometheusOption = DEFAULT_PROMETHEUS,
    *,
    since: Annotated[
        str, typer.Option("--since", metavar="SPAN", help="How far back to look, as in 15m or 1h.")
    ] = "1h",
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="SPAN",
            show_default=False,
            help="How much before that is the baseline; default: as much.",
        ),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(
            "--step",
            metavar="SPAN",
            show_default=False,
            help="Time between two values; default: a 240th, 15s at least.",
        ),
    ] = None,
    match: MatchOption = "",
    bearer_file: BearerOption = None,
    basic_file: BasicOption = None,
    ca_file: AuthorityOption = None,
    cert_file: CertificateOption = None,
    insecure: InsecureOption = False,
    timeout_seconds: TimeoutOption = 9.0,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of the bootstrap's draws.")] = 0,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="SIGNAL",
            show_default=False,
            help="Print the query of a signal, or of `all`; ask nothing.",
        ),
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="From which finding on the exit code is not 0.")
    ] = FailOn.WARNING,
    output: Annotated[Format, typer.Option("--format", help="What is printed.")] = Format.TABLE,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", show_default=False, help="Write a page that stands alone, too."),
    ] = None,
    watch: Annotated[
        str | None,
        typer.Option("--watch", metavar="SPAN", show_default=False, help="Look again each SPAN until interrupted."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find the cause of an overload from what a Prometheus kept, and name one thing to change.

    Exit code: 0 healthy, 1 warning, 2 overload, 3 not enough data; 130 where --watch was interrupted.

    Example: llmshed diagnose --prometheus http://prometheus:9090 --since 30m
    """
    from llmshed.clock import SystemClock

    from . import _diagnose_page, _diagnose_read, _diagnose_told, _page_file

    window_seconds = read_span("--since", since, 60, 30 * 86_400)
    before_seconds = window_seconds if baseline is None else read_span("--baseline", baseline, 60, 30 * 86_400)
    step_seconds = read_span("--step", step, 1, 3600) if step is not None else max(15, round(window_seconds / 240))
    asking = _diagnose_read.Asking(
        url=read_address("--prometheus", prometheus),
        access=_diagnose_read.access_of(bearer_file, basic_file, ca_file, cert_file, checked=not insecure),
        window_seconds=window_seconds,
        baseline_seconds=before_seconds,
        step_seconds=step_seconds,
        selector=match.strip().strip("{}"),
        timeout_seconds=timeout_seconds,
    )
    if explain is not None:
        _diagnose_told.print_queries(explain, asking)
        return
    if html is not None:
        _page_file.check_page_file(html, (bearer_file, basic_file, ca_file, cert_file))
    pause_seconds = None if watch is None else read_span("--watch", watch, 1, 3600)
    while True:
        told = _diagnose_read.diagnosed(asking, SystemClock(), seed)
        _diagnose_told.print_diagnosis(told, asking, Format.JSON if as_json else output)
        if html is not None:
            _page_file.write_page(html, partial(_diagnose_page.page, told, asking))
        if pause_seconds is None:
            break
        time.sleep(pause_seconds)
    code = _diagnose_told.exit_code(told, fail_on)
    if code:
        raise typer.Exit(code)
