"""How long virtual time takes: forty minutes of conversations before four replicas, and two and four times of both.

The trace is that of tests (`TEST_DATA`, or `../shared/data` beside the repository); where it is not to be had, made-up
requests of its mean lengths and rate stand in. Run it alone: `python bench/whatif.py`; it takes some minutes.
"""

import gzip
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from llmshed.config.loading import load_config
from llmshed.simulation.hardware.parsing import parse_replica
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.whatif.report import RunReport
from llmshed.whatif.staging import build_controller, setting_from
from llmshed.whatif.world import RunPlan, simulate
from llmshed.workload.ceilings import CeilingRule, with_ceilings
from llmshed.workload.clients import ClientModel
from llmshed.workload.readers.azure import read_azure
from llmshed.workload.readers.reading import Reading
from llmshed.workload.request import TracedRequest
from llmshed.workload.scaling import in_rate
from llmshed.workload.summary import quartile_edges

ROOT = Path(__file__).resolve().parents[1]
REPLICA = ROOT / "profiles" / "replicas" / "llama-3-8b-h100.toml"
TRACE = "azure_conv_2023_first40min.csv.gz"
SECONDS, PER_SECOND = 2400.0, 5.9

Trace = Callable[[], Iterator[TracedRequest]]


def recorded(path: Path) -> Iterator[TracedRequest]:
    """Yield the requests of the recorded trace, with ceilings of the next power of two."""
    with gzip.open(path) as file:
        pieces = iter(partial(file.read, 65_536), b"")
        yield from with_ceilings(read_azure(pieces, Reading(random.Random(0))), CeilingRule.POW2)  # noqa: S311 - a seed


def made_up() -> Iterator[TracedRequest]:
    """Yield requests of the trace's mean lengths at Poisson times."""
    rng = random.Random(0)  # noqa: S311 - a seed
    at = rng.expovariate(PER_SECOND)
    while at < SECONDS:
        output = 1 + int(rng.expovariate(1 / 210))
        yield TracedRequest(at, 1 + int(rng.expovariate(1 / 1150)), output, 1 << output.bit_length())
        at += rng.expovariate(PER_SECOND)


def run(trace: Trace, scale: int, parameters: ReplicaParameters) -> RunReport:
    """Run `scale` times the trace before `scale` times four replicas, through the daemon's own controller."""
    text = f"[[pools]]\ngross_ceiling_tokens = {parameters.kv_tokens}\nreplicas = [{{name = 'a', url = 'simulated:'}}]"
    config = load_config(text, "bench", {}, {}).config
    setting = setting_from(config, {}, parameters, {"main": 4 * scale})
    rng = random.Random(0)  # noqa: S311 - a seed
    requests = in_rate(trace(), float(scale), rng)
    plan = RunPlan(quartile_edges(trace()))
    return simulate(setting, build_controller(setting), requests, ClientModel.NONE, rng, plan)


def main() -> None:
    """Print the figures."""
    folder = Path(os.environ.get("TEST_DATA", ROOT.parent / "shared" / "data"))
    path = folder / "traces" / TRACE
    trace: Trace = partial(recorded, path) if path.is_file() else made_up
    parameters = parse_replica(REPLICA.read_text("utf-8"), REPLICA.name).parameters
    if not isinstance(parameters, ReplicaParameters):
        sys.exit(f"{REPLICA.name} is not of Text Generation Inference")
    print(f"{path.name if path.is_file() else 'made-up requests'} before 4 replicas of {REPLICA.stem}")
    first = 0.0
    for scale in (1, 2, 4):
        wall, cpu = time.perf_counter(), time.process_time()
        report = run(trace, scale, parameters)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        each = cpu / report.requests
        first = first or each
        print(
            f"  {scale}x: {report.requests:,} requests, {4 * scale} replicas: {wall:5.1f} s wall, {cpu:5.1f} s CPU,"
            f" {1e6 * each:4.0f} us a request ({each / first:.2f} x), {report.turns / report.requests:.1f} turns each"
        )


if __name__ == "__main__":
    main()
