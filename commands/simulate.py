"""`llmshed simulate`: a TGI replica without a GPU."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ._options import JsonOption
from ._output import print_json

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from llmshed.emulator import Emulator, EmulatorSettings
    from llmshed.emulator.faults import FaultPlan

SCHEMA = "llmshed.simulate/1"
CEILING = "ceiling"
MODEL_ID = "llmshed/simulated"
MOST_TOKENS = 100_000_000


def simulate(
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0 takes a free one.")] = 3000,
    replica: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAME",
            show_default=False,
            help="Model and GPU to simulate: a file, or one that ships with llmshed; options below win over it.",
        ),
    ] = None,
    tgi_version: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION", show_default=False, help="Version of TGI to follow, 1.4.0 to 3.x; default: 3.3.5."
        ),
    ] = None,
    model_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID", show_default=False, help="Model id to tell; default: the replica's, else llmshed/simulated."
        ),
    ] = None,
    tokenizer: Annotated[
        str, typer.Option(metavar="DIR|ID", help="Tokenizer directory, hub id, or embedded.")
    ] = "embedded",
    max_concurrent_requests: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1_000_000,
            metavar="N",
            show_default=False,
            help="Permits: sequences queued and running together; default: 128.",
        ),
    ] = None,
    max_input_tokens: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST_TOKENS, metavar="N", show_default=False, help="Longest prompt; default: total - 1."
        ),
    ] = None,
    max_total_tokens: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=MOST_TOKENS,
            metavar="N",
            show_default=False,
            help="Longest prompt and output of a sequence; default: 8192.",
        ),
    ] = None,
    max_batch_prefill_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_TOKENS,
            metavar="N",
            show_default=False,
            help="Most tokens of one step; default: 4096, before 3.0 at least the longest prompt.",
        ),
    ] = None,
    kv_tokens: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=MOST_TOKENS,
            metavar="N",
            show_default=False,
            help="Tokens of the KV cache; default: 49152, or the longest sequence if that is more.",
        ),
    ] = None,
    max_client_batch_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1_000_000,
            metavar="N",
            show_default=False,
            help="Most prompts of one completions request; default: 4.",
        ),
    ] = None,
    max_best_of: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, metavar="N", show_default=False, help="Largest best_of; default: 2."),
    ] = None,
    step_seconds: Annotated[
        float | None,
        typer.Option(
            min=0.000_01,
            max=3600,
            metavar="SECONDS",
            show_default=False,
            help="Fixed time of a step; default: 0.025.",
        ),
    ] = None,
    prefill_tokens_per_second: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=1e9,
            metavar="N",
            show_default=False,
            help="Prompt tokens worked through in a second of steps; default: 8000.",
        ),
    ] = None,
    decode_sequence_seconds: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=10,
            metavar="SECONDS",
            show_default=False,
            help="Time that each decoding sequence adds to a step; default: 0.0001.",
        ),
    ] = None,
    output_mean: Annotated[
        str, typer.Option(metavar="N|ceiling", help="Mean natural output length, or ceiling: none ends by itself.")
    ] = "128",
    seed: Annotated[int, typer.Option(metavar="N", help="Changes the made-up texts and their lengths.")] = 0,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", show_default=False, help="Fault that is on from the start; may be repeated."
        ),
    ] = None,
    api_key_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", show_default=False, help="File with the key that POST routes ask for."),
    ] = None,
    record: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", show_default=False, help="Write what reaches the scheduler, and its results; no text."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a simulated TGI replica until SIGINT or SIGTERM.

    It answers as TGI does, counts with real tokenizers and makes up its text. Faults can be changed while it runs by
    POST /_simulate/faults; GET /_simulate/state tells what it holds.

    Example: llmshed simulate --port 3000 --replica llama-3-8b-a10g
    """
    from llmshed.emulator import EmulatorSettings

    from ._replica import read_replica_file
    from ._simulated import simulated_parameters

    file = None if replica is None else read_replica_file(replica)
    limits = {
        "version": tgi_version,
        "max_concurrent_requests": max_concurrent_requests,
        "max_input_tokens": max_input_tokens,
        "max_total_tokens": max_total_tokens,
        "max_batch_prefill_tokens": max_batch_prefill_tokens,
        "kv_tokens": kv_tokens,
        "max_client_batch_size": max_client_batch_size,
        "max_best_of": max_best_of,
    }
    times = {
        "step_seconds": step_seconds,
        "seconds_per_prefill_token": None if prefill_tokens_per_second is None else 1 / prefill_tokens_per_second,
        "seconds_per_decoding_sequence": decode_sequence_seconds,
    }
    own_model_id = MODEL_ID if file is None else file.model.id
    try:
        settings = EmulatorSettings(
            parameters=simulated_parameters(limits, times, file),
            model_id=own_model_id if model_id is None else model_id,
            tokenizer=tokenizer,
            seed=seed,
            output_mean_tokens=_mean(output_mean),
            api_key=_key(api_key_file),
            faults=_faults(fault or []),
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if not host:  # which would be every interface
        raise typer.BadParameter("--host '': an address or a name is needed, as in 127.0.0.1")
    if record in {"", "-"}:  # the URL is told on standard output
        raise typer.BadParameter(f"--record {record!r}: the path of a file is needed; ./- is a file of that name")
    _run(settings, host, port, None if record is None else Path(record), as_json=as_json)


def _mean(text: str) -> float | None:
    if text == CEILING:
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--output-mean {text!r}: a number from 1 to 1000000 or {CEILING} is needed") from None


def _key(file: str | None) -> str | None:
    if file is None:
        return None
    from ._input import read_text

    key = read_text(file).strip()
    if not key:
        raise ValueError(f"--api-key-file {file}: the file is empty; a key on one line is needed")
    return key


def _faults(texts: list[str]) -> "FaultPlan":
    from llmshed.emulator.faults import build_plan, parse_fault

    return build_plan(dict(parse_fault(text) for text in texts))


def _run(settings: "EmulatorSettings", host: str, port: int, record: Path | None, *, as_json: bool) -> None:
    import asyncio
    import logging
    import sys
    from contextlib import nullcontext

    from llmshed.emulator import Emulator
    from llmshed.emulator.recorder import recorded_scheduler

    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="llmshed: %(message)s")
    schedule = nullcontext(None) if record is None else recorded_scheduler(record, settings.parameters)
    with schedule as scheduler, asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(Emulator(settings, scheduler=scheduler), host, port, as_json=as_json))


def _loop_factory() -> "Callable[[], asyncio.AbstractEventLoop] | None":
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(emulator: "Emulator", host: str, port: int, *, as_json: bool) -> None:
    import asyncio
    import signal

    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            emulator.hurry()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    url = await emulator.start(host, port)
    _tell(emulator.settings, url, as_json=as_json)
    await stop.wait()
    await emulator.stop()


def _tell(settings: "EmulatorSettings", url: str, *, as_json: bool) -> None:
    parameters = settings.parameters
    if as_json:
        told = {"url": url, "version": parameters.version, "model_id": settings.model_id}
        print_json(SCHEMA, {**told, "kv_tokens": parameters.kv_tokens, "max_total_tokens": parameters.max_total_tokens})
    else:
        typer.echo(f"simulated TGI {parameters.version} at {url}")
