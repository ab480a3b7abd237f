"""`llmshed whatif`: a trace of traffic before simulated replicas, in virtual time."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from llmshed.errors import ExitCode

from ._options import JsonOption
from ._output import print_json
from ._whatif_wishes import check_standard_input, read_arrivals, read_copies, read_policies, read_scales

MOST_REQUESTS = 1_000_000_000


def whatif(
    copies: Annotated[
        list[str] | None,
        typer.Argument(metavar="COPIES", show_default=False, help="How many replicas, as in x4; default: x1."),
    ] = None,
    *,
    trace: Annotated[
        str, typer.Option(metavar="FILE", show_default=False, help="Trace of requests, packed or not; - reads stdin.")
    ],
    trace_format: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default=False, help="Kind of trace; default: told by its first line."),
    ] = None,
    replica: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|NAME",
            show_default=False,
            help="What a replica is; default: the simulated one of a first run.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", show_default=False, help="Configuration; default: defaults."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Another configuration to compare with."),
    ] = None,
    ladder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE|off",
            show_default=False,
            help="Ladder of every pool; default: what the configuration names.",
        ),
    ] = None,
    arrivals: Annotated[
        str,
        typer.Option(metavar="PROCESS", help="When requests come: trace, constant, poisson, or gamma:2.5 by its CV."),
    ] = "trace",
    scale: Annotated[str, typer.Option(metavar="SCALES", help="Factors on the traffic, as in 1,2,5,10.")] = "1",
    scale_by: Annotated[
        Literal["rate", "time"], typer.Option(help="More of the traffic, or the same traffic faster.")
    ] = "rate",
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", show_default=False, help="Policy to run, or all; may be repeated; default: ours."),
    ] = None,
    ceiling: Annotated[
        Literal["asked", "pow2", "flat1024", "flat4096"] | None,
        typer.Option(show_default=False, help="Output ceilings; default: asked if the trace holds any, else pow2."),
    ] = None,
    clients: Annotated[
        Literal["none", "polite", "sdk", "rude"], typer.Option(help="What clients do when refused.")
    ] = "none",
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, metavar="N", help="Of every draw.")] = 0,
    limit: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_REQUESTS, metavar="N", show_default=False, help="Take the first N requests only."),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(min=0.001, max=1e9, metavar="SECONDS", show_default=False, help="Take only the first SECONDS."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.000_001,
            max=1e6,
            metavar="N",
            show_default=False,
            help="Requests a second, for --arrivals other than trace, and traces that hold no arrivals.",
        ),
    ] = None,
    gateway_seconds: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=10,
            metavar="SECONDS",
            show_default=False,
            help="Time of the gateway for a request; default 0.002.",
        ),
    ] = None,
    gateway_token_seconds: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="SECONDS",
            show_default=False,
            help="Time of the gateway for a token that it relays; default 0.00009.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default=False, help="Write a page with tables and drawings too.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell what a configuration would have done to a trace of traffic.

    The gateway's own controller meets the requests of the trace before simulated replicas on a virtual clock, so that
    hours pass in seconds. Other policies can be run beside it. The same seed gives the same output.

    Example: llmshed whatif --trace azure.csv.gz --replica llama-3-8b-h100 x4 --config llmshed.toml --scale 1,2,5
    """
    from llmshed.whatif.gates.table import GATES, OURS

    process = read_arrivals(arrivals)
    scales = read_scales(scale)
    count = read_copies(replica or [], copies or [])
    check_standard_input(trace, replica or [])
    policies = read_policies(policy or [OURS], GATES)
    from llmshed.workload.ceilings import CeilingRule
    from llmshed.workload.clients import ClientModel

    from ._page_file import check_page_file, write_page
    from ._whatif_facts import result_of
    from ._whatif_hindcast import hindcast_of
    from ._whatif_pace import pace_of
    from ._whatif_progress import performed
    from ._whatif_runs import Study, differences
    from ._whatif_stages import GatewayTimes, named_replicas, read_stages
    from ._whatif_told import as_object, print_result
    from ._whatif_traffic import Part, opened_traffic

    if html is not None:
        check_page_file(html, (trace, config, against, *(replica or ())))
    replicas = named_replicas(replica[0] if replica else None, count)
    stages = read_stages(config, against, replicas, GatewayTimes(gateway_seconds, gateway_token_seconds), ladder)
    part, model = Part(limit, duration, rate, retimed=process is not None), ClientModel(clients)
    with opened_traffic(trace, trace_format, part, seed, fold_retries=model is not ClientModel.NONE) as traffic:
        known = traffic.summary.with_ceiling or traffic.format.tells_endings
        rule = CeilingRule(ceiling or (CeilingRule.ASKED if known else CeilingRule.POW2))
        pace = pace_of(process, rate, traffic)
        study = Study(traffic, pace, stages, policies, scales, scale_by, rule, model, seed)
        hindcast = hindcast_of(study, replicas, quiet=quiet)
        proposed = hindcast is None or hindcast.holds
        runs = performed(study, quiet=quiet) if proposed else ()
        result = result_of(study, replicas, runs, differences(study, runs), hindcast)
        told = as_object(study, replicas, result) if as_json else {}
    if html is not None:
        from llmshed import __version__
        from llmshed.rendering.whatif_page import whatif_page

        write_page(html, lambda drawn: whatif_page(result, __version__, drawn=drawn))
    if as_json:
        from llmshed.whatif.report import SCHEMA

        print_json(SCHEMA, told)
    else:
        print_result(result)
    if not proposed:
        raise typer.Exit(ExitCode.NO_PROPOSAL)
