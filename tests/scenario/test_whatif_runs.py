"""A real hour in virtual time: what a run of the recorded traffic shows, and what it costs."""

import json
import os
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from fakes.stages import EDGES, OpenGate, made_up, run, stage
from fakes.traces import seeded, unpacked
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.whatif.report import RunReport
from llmshed.whatif.setting import Setting
from llmshed.whatif.staging import build_controller
from llmshed.whatif.world import RunPlan, World
from llmshed.workload.ceilings import CeilingRule, with_ceilings
from llmshed.workload.clients import ClientModel
from llmshed.workload.readers.azure import read_azure
from llmshed.workload.readers.reading import Reading
from llmshed.workload.request import TracedRequest
from llmshed.workload.scaling import in_rate
from llmshed.workload.summary import quartile_edges

TESTS = Path(__file__).resolve().parents[1]

LARGE = ReplicaParameters(
    max_concurrent_requests=256,
    max_input_tokens=16_000,
    max_total_tokens=16_384,
    max_batch_prefill_tokens=8192,
    kv_tokens=440_000,
    step_times=StepTimes(
        step_seconds=0.002,
        seconds_per_prefill_token=1 / 25_000,
        seconds_per_decoding_sequence=0.000_02,
        weights_seconds=0.006,
        seconds_per_attention_pair=2e-10,
        seconds_per_resident_token=6e-8,
    ),
)
"""About a model of 8 billion parameters on a GPU of 80 GB."""
FOUR = """
[[pools]]
gross_ceiling_tokens = 430_000
max_concurrent_sequences = 256
[[pools.replicas]]
name = "a"
url = "simulated:"
"""


def large_stage(copies: int = 4) -> Setting:
    return stage(copies, text=FOUR, parameters=LARGE)


def conversations(data_dir: Path) -> Iterator[TracedRequest]:
    """The first forty minutes of a day of conversations, 14,176 requests."""
    raw = unpacked(data_dir / "traces" / "azure_conv_2023_first40min.csv.gz")
    return with_ceilings(read_azure(raw, Reading(seeded())), CeilingRule.POW2)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("minutes", "requests"),
    [pytest.param(10, 2867, marks=pytest.mark.slow), pytest.param(40, 14_176, marks=pytest.mark.soak)],
)
def test_conversations_before_four_replicas(data_dir: Path, minutes: int, requests: int) -> None:
    def trace() -> Iterator[TracedRequest]:
        return takewhile(lambda one: one.at_seconds < 60 * minutes, conversations(data_dir))

    report = run(large_stage(), trace(), plan=RunPlan(quartile_edges(trace())))
    assert report.requests == requests
    assert report.drained
    assert report.total.attainment is not None
    assert report.total.attainment > 0.99, "four such replicas are enough for this trace"
    offered = report.total.offered_tokens_per_second
    true = sum(one.input_tokens + one.true_output_tokens for one in trace()) / report.offered_seconds
    assert offered == pytest.approx(true)
    quarter = report.requests / 4  # many prompts are equally long, so that quarters are uneven
    assert [one.arrived for one in report.quartiles] == pytest.approx([quarter] * 4, rel=0.15)
    assert report.ledger.looks >= report.offered_seconds / 10
    assert (report.ledger.only_in_gate, report.ledger.only_in_engine, report.ledger.broken_invariants) == (0, 0, ())
    assert report.ledger.looks_above_reserved == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_work_is_linear_in_the_requests(data_dir: Path) -> None:
    """The same replicas for each request: turns of the loop for a request do not grow with their number."""
    turns: list[float] = []
    for scale in (1, 2, 4):
        some = takewhile(lambda one: one.at_seconds < 100, conversations(data_dir))
        rng = random.Random(0)  # noqa: S311 - one seed, one trace
        report = run(large_stage(2 * scale), in_rate(some, float(scale), rng))
        turns.append(report.turns / report.requests)
    assert max(turns) < 1.2 * min(turns), turns
    assert max(turns) < 10, "an arrival, its own time in the gateway, a few steps of prefill, an end"


def peak_bytes(requests: int) -> int:
    setting = stage(2)
    rng = random.Random(0)  # noqa: S311 - one seed, one run
    trace = made_up(1, requests, 6.0)
    plan = RunPlan(EDGES, look_seconds=0.5)
    world = World(setting, build_controller(setting), trace, ClientModel.SDK, rng, plan)
    tracemalloc.start()
    try:
        world.run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "requests", [pytest.param(1400, marks=pytest.mark.slow), pytest.param(2800, marks=pytest.mark.soak)]
)
def test_memory_does_not_grow_with_the_trace(requests: int) -> None:
    """A hundred bytes kept of each request would be seen."""
    peak_bytes(100)  # what is loaded once
    few, many = peak_bytes(700), peak_bytes(requests)
    assert many < 1.15 * few, f"{few:,} bytes for 700 requests, {many:,} for {requests:,}"


@pytest.mark.slow
def test_twenty_runs_of_one_seed_are_one_run() -> None:
    def told(seed: int) -> bytes:
        report = run(stage(2), made_up(3, 120, 30.0), clients=ClientModel.POLITE, seed=seed)
        assert report.total.retries > 0, "clients that draw their waits"
        return json.dumps(report.to_dict()).encode()

    first = told(7)
    assert all(told(7) == first for _ in range(19))
    assert told(8) != first


def overload(per_second: float, *, bare: bool) -> RunReport:
    setting = stage(1)
    gate = OpenGate(setting) if bare else None
    return run(setting, made_up(5, int(60 * per_second), per_second), gate)


@pytest.mark.slow
def test_what_a_gateway_refuses_does_not_ruin_what_it_took() -> None:
    """Twice what one replica carries: without a gate nearly nobody is served in time, with ours as many as before."""
    once, twice = overload(5.0, bare=False), overload(10.0, bare=False)
    bare = overload(10.0, bare=True)
    assert twice.total.goodput_tokens_per_second > 0.8 * once.total.goodput_tokens_per_second
    assert bare.total.goodput_tokens_per_second < 0.5 * twice.total.goodput_tokens_per_second
    assert bare.total.throughput_output_tokens_per_second > 0.9 * twice.total.throughput_output_tokens_per_second


@pytest.mark.slow
def test_a_run_does_not_depend_on_the_process_that_it_runs_in() -> None:
    """Sets and hashes differ from process to process; nothing may follow from their order."""
    program = (
        "import hashlib, json\n"
        "from fakes.stages import made_up, run, stage\n"
        "from llmshed.workload.clients import ClientModel\n"
        "report = run(stage(2), made_up(3, 200, 30.0), clients=ClientModel.POLITE, seed=7)\n"
        "print(hashlib.sha256(json.dumps(report.to_dict()).encode()).hexdigest())\n"
    )

    def told(hash_seed: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(TESTS)}
        return subprocess.run(
            [sys.executable, "-c", program], env=environment, check=True, stdout=subprocess.PIPE
        ).stdout

    assert told("1") == told("2") != b""
