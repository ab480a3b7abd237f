"""One cell of `bench/goodput.py`: a run in virtual time, and the figures that are kept of it."""

from dataclasses import asdict, replace
from functools import cache
from hashlib import sha256
from json import dumps
from pathlib import Path
from random import Random
from typing import Any

import goodput_cases
from goodput_cases import ROOT, Case, Cell, sliced, traffic

import llmshed
from llmshed.config.loading import load_config
from llmshed.config.settings import Config
from llmshed.profile import Profile
from llmshed.profile.parsing import parse_profile
from llmshed.simulation.building import build_model
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.hardware.parsing import parse_replica
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.whatif.gate import Gate
from llmshed.whatif.gates.table import OURS, build_gate, oracle_gate
from llmshed.whatif.monitors.watched import WatchedGate
from llmshed.whatif.report import RunReport
from llmshed.whatif.setting import Setting
from llmshed.whatif.staging import setting_from
from llmshed.whatif.world import RunPlan, simulate
from llmshed.workload.clients import ClientModel
from llmshed.workload.summary import quartile_edges

Figures = dict[str, Any]
"""What is kept of a run: numbers and lists by name, fit for JSON."""

CALIBRATED = ROOT / "bench" / "profiles" / "calibrated"
"""Profiles that `bench/goodput_calibrated.py` writes."""
_CONFIG = """
[lanes.interactive]
ttft_objective_seconds = {interactive:g}
queue_share_ratio = {queue_share:g}
[lanes.bulk]
ttft_objective_seconds = {bulk:g}
[[pools]]
replicas = [{{ name = "a", url = "simulated:" }}]
"""
LONGEST_OF_IDLE = 5.0
"""Goodput holds a request to this multiple of its idle TTFT, and to a second at least."""
QUEUE_SECONDS = 0.3
"""What of an interactive objective waiting may take: 0.3 of the second that the smallest requests are held to."""
LEAST_BULK_SECONDS = 2.0
"""TTFT objective of the bulk lane, where the longest prompt of the other lane is not held to more."""
_MEASURED_PACKAGES = ("admission", "config", "profile", "routing", "simulation", "whatif", "workload")
"""What of llmshed a run is made of."""
_SECONDS_OF_A_STEP = tuple(StepTimes.__slots__)


def key_of(cell: Cell) -> str:
    """Return a name that is equal for equal inputs: the cell, its replica, its profile and the code that runs it."""
    parameters, profile = replica_of(cell.case.replica, _calibrated_on(cell))
    inputs = [asdict(cell), repr(parameters), profile.model_dump_json(), code_digest()]
    return sha256(dumps(inputs, sort_keys=True).encode()).hexdigest()[:24]


@cache
def code_digest() -> str:
    """Return a name of all source text that a run depends on, so that figures of other code are not taken for its."""
    package = Path(llmshed.__file__).parent
    files = sorted(path for part in _MEASURED_PACKAGES for path in (package / part).rglob("*.py"))
    digest = sha256()
    for path in (*files, Path(goodput_cases.__file__), Path(__file__)):
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def run_cell(cell: Cell) -> Figures:
    """Run one cell; equal inputs give equal figures."""
    setting = _setting(cell)
    report = simulate(
        setting,
        _gate(cell, setting),
        traffic(cell.case, cell.rate),
        ClientModel(cell.clients),
        Random("goodput/clients"),  # noqa: S311 - draws of waits, nothing is kept secret
        RunPlan(_edges(cell.case)),
    )
    return figures_of(report)


def kv_tokens(case: Case) -> int:
    """Return the size of the KV cache of one replica of a case."""
    return replica_of(case.replica)[0].kv_tokens


def figures_of(report: RunReport) -> Figures:
    """Return what is kept of a report."""
    total = report.total
    return {
        "requests": report.requests,
        "feasible": total.arrived - total.infeasible,
        "good": total.good,
        "good_requests_per_second": total.goodput_requests_per_second,
        "good_tokens_per_second": total.goodput_tokens_per_second,
        "good_output_tokens_per_second": total.goodput_output_tokens_per_second,
        "output_tokens_per_second": total.throughput_output_tokens_per_second,
        "attainment": total.attainment,
        "quartile_attainment": [one.attainment for one in report.quartiles],
        "quartile_good_tokens_per_second": [one.goodput_tokens_per_second for one in report.quartiles],
        "ttft_p95_seconds": total.ttft_seconds.p95,
        "tpot_p95_seconds": total.tpot_seconds.p95,
        "refusals": dict(total.refusals),
        "retries": total.retries,
        "unfinished": total.unfinished,
        "broken_invariants": report.ledger.broken_invariants_count,
    }


def _gate(cell: Cell, setting: Setting) -> Gate:
    """Return the gate of a cell; ours is watched by the monitors, whose sentences are broken invariants."""
    if cell.level is not None:
        return oracle_gate(setting, cell.level)
    gate = build_gate(cell.policy, setting)
    return WatchedGate(gate, setting.policy, setting.specs) if cell.policy == OURS else gate


def _setting(cell: Cell) -> Setting:
    """Return the stage; with a step-time error only the engines differ from what everybody takes them to be."""
    parameters, derived = replica_of(cell.case.replica)
    config = config_of(derived)
    _, profile = replica_of(cell.case.replica, _calibrated_on(cell))
    setting = setting_from(config, {"main": profile}, parameters, {"main": cell.case.replicas})
    if not cell.case.gateway_time:
        setting = replace(
            setting,
            gateway_seconds_per_request=0.0,
            gateway_seconds_per_input_token=0.0,
            gateway_seconds_per_output_token=0.0,
        )
    if cell.step_time_error == 0:
        return setting
    times = parameters.step_times
    factor = 1 + cell.step_time_error
    wrong = StepTimes(**{name: factor * getattr(times, name) for name in _SECONDS_OF_A_STEP})
    engine = replace(parameters, step_times=wrong)
    return replace(setting, models={name: build_model(engine) for name in setting.models})


def config_of(profile: Profile) -> Config:
    """Return the shipped defaults with the objectives that goodput is counted by; the replica is replaced.

    Raises:
        ValueError: the profile does not tell the idle TTFT that they follow from.
    """
    if profile.latency is None:
        raise ValueError(f"profile {profile.label} tells no idle TTFT")
    longest = max(1.0, LONGEST_OF_IDLE * profile.latency.unloaded_ttft_p95_seconds)
    text = _CONFIG.format(
        interactive=longest, queue_share=QUEUE_SECONDS / longest, bulk=max(LEAST_BULK_SECONDS, longest)
    )
    return load_config(text, "bench/goodput", {}, {}).config


def _calibrated_on(cell: Cell) -> str | None:
    return cell.case.trace if cell.calibrated else None


@cache
def replica_of(name: str, calibrated_on: str | None = None) -> tuple[ReplicaParameters, Profile]:
    """Return a replica and its profile: that of `bench/sweep.py`, or one calibrated on the trace that is named.

    Raises:
        TypeError: the replica is not of TGI.
    """
    replica = ROOT / "profiles" / "replicas" / f"{name}.toml"
    derived = ROOT / "bench" / "profiles" / f"{name}.toml"
    profile = derived if calibrated_on is None else CALIBRATED / f"{calibrated_on}-{name}.toml"
    parameters = parse_replica(replica.read_text("utf-8"), replica.name).parameters
    if not isinstance(parameters, ReplicaParameters):
        raise TypeError(f"{name} is not of Text Generation Inference")
    return parameters, parse_profile(profile.read_text("utf-8"), profile.name)


@cache
def _edges(case: Case) -> tuple[int, int, int]:
    """Return the quartiles of the prompts that the model takes."""
    longest = replica_of(case.replica)[0].max_input_tokens
    return quartile_edges(one for one in sliced(case) if one.input_tokens <= longest)
