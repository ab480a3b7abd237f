"""`llmshed review`: how the gateways did over days, and what a request for more GPUs has to say."""

from pathlib import Path
from typing import Annotated

import typer

from llmshed.errors import ExitCode

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
from ._spans import read_span, written_span

SCHEMA = "llmshed.review/1"


def review(
    prometheus: PrometheusOption = DEFAULT_PROMETHEUS,
    *,
    since: Annotated[str, typer.Option("--since", metavar="SPAN", help="How far back, as in 24h or 7d.")] = "7d",
    match: MatchOption = "",
    bearer_file: BearerOption = None,
    basic_file: BasicOption = None,
    ca_file: AuthorityOption = None,
    cert_file: CertificateOption = None,
    insecure: InsecureOption = False,
    timeout_seconds: TimeoutOption = 30.0,
    capacity_request: Annotated[
        bool, typer.Option("--capacity-request", help="Write a request for more GPUs, in Markdown.")
    ] = False,
    model: Annotated[str, typer.Option("--model", metavar="TEXT", show_default=False, help="For that request.")] = "",
    objective: Annotated[
        str, typer.Option("--objective", metavar="TEXT", show_default=False, help="What is promised; for that request.")
    ] = "",
    locality: Annotated[
        str, typer.Option("--locality", metavar="TEXT", show_default=False, help="Where, and what prompts share.")
    ] = "",
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", show_default=False, help="Write a page that stands alone, too."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what was refused and served, who waited longest, what stood idle, and what was reserved and not used.

    Exit code: 0, or 69 where nothing is known of any gateway.

    Example: llmshed review --prometheus http://prometheus:9090 --since 7d --html week.html
    """
    from llmshed import __version__
    from llmshed.clock import SystemClock
    from llmshed.rendering.capacity_request import Stated
    from llmshed.rendering.capacity_request import capacity_request as written_request
    from llmshed.rendering.review_page import review_page

    from . import _diagnose_read, _page_file, _review_read
    from ._output import print_json, print_note

    if capacity_request and as_json:
        raise typer.BadParameter("give one of --capacity-request, which is Markdown, and --json")
    if html is not None:
        _page_file.check_page_file(html, (bearer_file, basic_file, ca_file, cert_file))
    url, span_seconds = read_address("--prometheus", prometheus), read_span("--since", since, 300, 90 * 86_400)
    access = _diagnose_read.access_of(bearer_file, basic_file, ca_file, cert_file, checked=not insecure)
    asking = _review_read.Asking(url, access, span_seconds, match.strip().strip("{}"), timeout_seconds)
    found = _review_read.reviewed(asking, SystemClock())
    if html is not None:
        facts = (("Prometheus", url), ("span", f"the last {written_span(span_seconds)}"))
        _page_file.write_page(html, lambda drawn: review_page(found, facts, __version__, drawn=drawn))
    if as_json:
        print_json(SCHEMA, _review_read.report(found, url))
    elif capacity_request:
        typer.echo(written_request(found, Stated(model, objective, locality)), nl=False)
    else:
        _review_read.print_review(found, url)
    if found.is_empty:
        print_note(f"nothing is known of any gateway at {url}; --match names others")
        raise typer.Exit(ExitCode.UNAVAILABLE)
