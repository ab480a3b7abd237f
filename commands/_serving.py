"""Running the gateway in this process: its log, its event loop, and what a person is told at the start."""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import typer

from llmshed import __version__

from ._output import print_json

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from llmshed.config.loading import LoadedConfig
    from llmshed.config.settings import Config
    from llmshed.gateway.daemon.app import Gateway
    from llmshed.gateway.daemon.reload import Inputs

SCHEMA = "llmshed.serve/1"
_STANDARD_ERROR = 2


def serve_until_stopped(read: "Callable[[], LoadedConfig]", *, as_json: bool) -> None:
    """Serve by what `read` returns, and by what it returns at each reload, until a signal.

    With `as_json` the addresses are one object on stdout too, for programs that start this one on free ports.

    Raises:
        LlmshedError: the gateway cannot start.
    """
    import asyncio

    from llmshed.gateway.daemon.assembly import read_inputs
    from llmshed.gateway.door.listener import raise_descriptor_limit

    loaded = read()
    inputs = read_inputs(loaded.config)
    lines = [*_introduction(loaded)]  # read before anything is opened, so that a bad profile is told first
    raise_descriptor_limit()
    # The tokenizers library would spread a batch over a thread for each core, beside the `counting.threads` that the
    # operator granted, and so take the event loop's core too. A prompt is one text, which gains nothing by it.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with asyncio.Runner(loop_factory=_loop_factory(loaded.config)) as runner:
        runner.run(_serve(read, inputs, lines, as_json=as_json))


async def _serve(
    read: "Callable[[], LoadedConfig]", inputs: "Inputs", introduction: list[str], *, as_json: bool
) -> None:
    from llmshed.clock import SystemClock
    from llmshed.gateway.daemon.assembly import Reports, read_inputs
    from llmshed.gateway.daemon.daemon import Surroundings, listening
    from llmshed.gateway.daemon.memory import settle
    from llmshed.gateway.daemon.notify import Notifier
    from llmshed.observability.decisions import DecisionLog
    from llmshed.observability.goodput import objectives_of
    from llmshed.observability.logs import configure_logging, decision_sink
    from llmshed.observability.metrics import Metrics
    from llmshed.observability.observer import Observer
    from llmshed.observability.writer import LineWriter

    metrics = Metrics()

    def dropped(lines: int) -> None:
        metrics.lines_dropped.of().inc(lines)

    def on_config(config: "Config") -> None:
        configure_logging(config.log.level, log.write)
        if decisions is not None:
            decisions.reopen()  # a reload is also how logrotate tells that it moved the file

    config = inputs.config
    log = LineWriter(_STANDARD_ERROR, dropped)
    sink, decisions = decision_sink(config.log.decisions, log, dropped)
    decision_log = DecisionLog(sink, config.server.decision_history)
    reports = Reports(Observer(metrics, decision_log, objectives_of(config.lanes)), decision_log, on_config)
    notifier = Notifier.from_environment(os.environ)
    surroundings = Surroundings(reports, lambda: read_inputs(read().config), notifier, SystemClock())
    configure_logging(config.log.level, log.write)
    try:
        async with listening(inputs, surroundings) as daemon:
            for line in (*_addresses(daemon.gateway), *introduction, *_commands(daemon.gateway)):
                typer.echo(line, err=True)
            if as_json:
                urls = {"url": daemon.gateway.data_url, "admin_url": daemon.gateway.admin_url}
                print_json(SCHEMA, {**urls, "version": __version__})
            settle()
            daemon.begin(inputs)
            await daemon.run()
    finally:
        for writer in (decisions, log):
            if writer is not None:
                writer.close()


def _loop_factory(config: "Config") -> "Callable[[], AbstractEventLoop] | None":
    """Return what makes the event loop; None for asyncio's own."""
    match config.server.event_loop:
        case "uvloop":
            import uvloop

            return uvloop.new_event_loop
        case "asyncio":
            return None


def _introduction(loaded: "LoadedConfig") -> Iterator[str]:
    """Yield what stands behind the gateway, and what an operator should know of it.

    Raises:
        ProfileError: a profile cannot be used.
    """
    from llmshed.config.addresses import SIMULATED
    from llmshed.gateway.replicas.pool_tools import load_profile

    yield f"configuration: {loaded.source}"
    for pool in loaded.config.pools:
        profile = load_profile(pool)
        engines = ", ".join(
            "a simulated replica in this process" if replica.url == SIMULATED else f"{pool.engine} at {replica.url}"
            for replica in pool.replicas
        )
        if profile is None:
            yield f"pool {pool.name}: {engines}; UNCALIBRATED: its budget is assumed, not measured"
        else:
            yield f"pool {pool.name}: {engines}; numbers of profile {profile.label}"
    if loaded.config.admission.mode == "observe":
        yield "admission: OBSERVE MODE: it decides and records, and refuses nothing that an engine could answer"
    for warning in loaded.warnings:
        yield f"warning: {warning}"


def _addresses(gateway: "Gateway") -> Iterator[str]:
    from llmshed.config.addresses import Address

    yield f"llmshed {__version__} listens on {gateway.data_url}, for operators on {gateway.admin_url}"
    server = gateway.snapshot.config.server
    for setting, text in (("listen", server.listen), ("admin_listen", server.admin_listen)):
        if not Address.parse(text).loopback:
            yield f"server.{setting} is {text}: other machines reach it"


def _commands(gateway: "Gateway") -> Iterator[str]:
    """Yield three commands to try; they can be copied as they stand, but for a key where one is needed."""
    from llmshed.admission.settings import ANONYMOUS

    config = gateway.snapshot.config
    pool = config.pools[0]
    model = (*pool.aliases, pool.model)[0]
    open_to_all = ANONYMOUS in gateway.policy.tenants
    key = "" if open_to_all else " -H 'Authorization: Bearer KEY'"
    curl = f"curl{key} -H 'Content-Type: application/json'"
    chat = f'{{"model":"{model}","messages":[{{"role":"user","content":"Hello"}}],"max_tokens":32'
    yield "try:"
    yield f"  {curl} {gateway.data_url}/v1/chat/completions -d '{chat}}}'"
    yield f"  {curl} -N {gateway.data_url}/v1/chat/completions -d '{chat},\"stream\":true}}'"
    if gateway.admin_url.startswith("http"):
        program = "llmshed" if shutil.which("llmshed") else shlex.quote(sys.argv[0])  # as in an environment of its own
        yield f"  {program} classify 'Hello' --gateway {gateway.data_url if open_to_all else gateway.admin_url}"
    yield "log:"
