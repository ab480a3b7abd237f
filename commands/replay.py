"""`llmshed replay`: real traffic, by its lengths and arrivals alone, at a gateway or a replica."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from llmshed.errors import ExitCode

from ._options import JsonOption

MOST_REQUESTS = 1_000_000_000


def replay(
    context: typer.Context,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE", show_default=False, help="Trace, decision log or histograms, packed or not; - is stdin."
        ),
    ] = None,
    *,
    to: Annotated[
        str | None, typer.Option(metavar="URL", show_default=False, help="Gateway or replica that is sent to.")
    ] = None,
    gateway: Annotated[
        bool | None,
        typer.Option("--gateway/--replica", show_default=False, help="What stands there; default: it is asked."),
    ] = None,
    engine: Annotated[
        Literal["tgi", "vllm", "llamacpp"], typer.Option(help="Engine of the replica, or behind the gateway.")
    ] = "tgi",
    api: Annotated[
        Literal["text", "chat"] | None,
        typer.Option(show_default=False, help="Form of the requests; default: chat to a gateway, text to a replica."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default=False, help="Model to ask for; default: the first that is named."),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(metavar="DIR|ID", show_default=False, help="Tokenizer of the model; default: the embedded one."),
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default=False, help="File with the key to send.")
    ] = None,
    trace_format: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default=False, help="Kind of the source; default: told by its first line."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(min=0.000_001, max=1e5, metavar="N", show_default=False, help="Requests a second."),
    ] = None,
    arrivals: Annotated[
        str | None,
        typer.Option(
            metavar="PROCESS",
            show_default=False,
            help="How they come: trace, constant, poisson, or gamma:2.5 by CV; default: trace, or poisson with --rate.",
        ),
    ] = None,
    speed: Annotated[
        float | None,
        typer.Option(min=0.001, max=1000, metavar="X", show_default=False, help="The trace's own arrivals, X as fast."),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(min=0.001, max=1e7, metavar="SECONDS", show_default=False, help="Send for so long at most."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_REQUESTS, metavar="N", show_default=False, help="Take the first N requests only."),
    ] = None,
    ceiling: Annotated[
        Literal["asked", "pow2", "flat1024", "flat4096"] | None,
        typer.Option(show_default=False, help="Output ceilings; default: asked if the source holds any, else pow2."),
    ] = None,
    lengths: Annotated[
        Literal["model", "trace"], typer.Option(help="Where answers end: where the model does, or as in the trace.")
    ] = "model",
    prefixes: Annotated[
        Literal["none", "trace"], typer.Option(help="What prompts share: nothing, or what those of the trace did.")
    ] = "trace",
    clients: Annotated[
        Literal["none", "polite", "sdk", "rude"], typer.Option(help="What clients do when refused.")
    ] = "none",
    tpot_objective: Annotated[
        float, typer.Option(min=0.001, max=60, metavar="SECONDS", help="Mean time per token that goodput asks for.")
    ] = 0.1,
    probe: Annotated[
        bool, typer.Option("--probe/--no-probe", help="Measure the time to first token of a few lone requests first.")
    ] = True,
    samples: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Write the times of every try there (CSV)."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, metavar="N", help="Of every draw.")] = 0,
    force: Annotated[
        bool, typer.Option("--force", help="Send to a replica that others use, or that counts otherwise.")
    ] = False,
    sanitize: Annotated[
        str | None,
        typer.Option(metavar="LOG", show_default=False, help="Send nothing: strip a decision log of all but lengths."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", show_default=False, help="Where --sanitize writes."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Send traffic of the lengths and arrivals of a source, and tell waits, refusals and goodput.

    Prompts are random words of the exact token counts. Requests go out at their planned instants whatever becomes of
    the others. Ctrl-C ends it with what was measured.

    Example: llmshed replay decisions.jsonl --to http://127.0.0.1:8080 --speed 2 --clients sdk
    """
    from ._replay_wishes import check_sanitize, check_wishes, read_pace, typed

    if sanitize is not None:
        from ._replay_sanitize import sanitize_log

        sanitize_log(*check_sanitize(sanitize, output, typed(context)), as_json=as_json)
        return
    name, url = check_wishes(source, to, output, samples)
    from llmshed.loadtest.plan import Lengths, Prefixes
    from llmshed.workload.ceilings import CeilingRule
    from llmshed.workload.clients import ClientModel

    from ._input import read_text
    from ._replay_run import Wishes, replayed
    from ._replay_target import Address
    from ._replay_told import print_replay

    key = None if key_file is None else read_text(str(key_file)).strip()
    wishes = Wishes(
        address=Address(url, gateway, engine, api, model, tokenizer, key, force=force),
        source=name,
        trace_format=trace_format,
        pace=read_pace(arrivals, rate, speed),
        duration_seconds=duration,
        most_requests=limit,
        ceiling=None if ceiling is None else CeilingRule(ceiling),
        lengths=Lengths(lengths),
        prefixes=Prefixes(prefixes),
        clients=ClientModel(clients),
        tpot_seconds=tpot_objective,
        probe=probe,
        samples=samples,
        seed=seed,
        quiet=quiet,
    )
    result = replayed(wishes)
    print_replay(wishes, result, as_json=as_json)
    if result.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
