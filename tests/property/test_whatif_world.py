"""Whatever the traffic, the gate, the engine and the clients: nothing is lost, nothing lies, nothing is chance."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.plain_replica import PlainReplica
from fakes.stages import EDGES, GPU, OpenGate, ShutGate, run, stage, stage_of
from llmshed.admission.request import Intent, PriorityClass
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.whatif.gate import Gate
from llmshed.whatif.monitors.watched import WatchedGate
from llmshed.whatif.report import RunReport, Slice
from llmshed.whatif.setting import Setting
from llmshed.whatif.staging import build_controller
from llmshed.whatif.world import RunPlan
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest


def watched(setting: Setting) -> Gate:
    """Return the daemon's controller under both monitors, whose sentences count as broken invariants."""
    return WatchedGate(build_controller(setting), setting.policy, setting.specs)


GATES: dict[str, Callable[[Setting], Gate]] = {"ours": watched, "open": OpenGate, "shut": ShutGate}
STAGES: dict[str, Callable[[int], Setting]] = {
    "tgi": stage,
    "small tgi": lambda copies: stage(copies, parameters=replace(GPU, kv_tokens=9000, max_concurrent_requests=4)),
    "vllm": lambda copies: stage(copies, parameters=VllmParameters(kv_tokens=9_000)),
    "limited vllm": lambda copies: stage(
        copies,
        parameters=VllmParameters(
            max_num_seqs=6, kv_tokens=9_000, max_num_queued_reqs=9, max_num_queued_tokens=4_000, watermark_ratio=0.02
        ),
    ),
    "plain": lambda copies: stage_of(PlainReplica, copies),
}

REQUESTS = st.builds(
    TracedRequest,
    at_seconds=st.floats(0, 60),
    input_tokens=st.one_of(st.integers(1, 500), st.integers(1, 9000)),
    true_output_tokens=st.integers(1, 1500),
    asked_output_tokens=st.one_of(st.none(), st.integers(1, 2500)),
    tenant=st.sampled_from(["red", "blue", "green"]),
    intent=st.one_of(st.none(), st.sampled_from(Intent)),
    priority_class=st.one_of(st.none(), st.sampled_from(PriorityClass)),
    streamed=st.booleans(),
    copies=st.integers(1, 3),
)
TRACES = st.lists(REQUESTS, max_size=25).map(lambda some: sorted(some, key=lambda one: one.at_seconds))


def ended(one: Slice) -> int:
    return one.infeasible + one.finished + one.failed + one.given_up + one.unfinished


def check(report: RunReport, trace: list[TracedRequest]) -> None:
    assert report.ledger.broken_invariants == ()
    assert report.requests == report.total.arrived == len(trace)
    assert ended(report.total) == len(trace)
    for parts in (report.lanes.values(), report.classes.values(), report.quartiles, [c.slice for c in report.cells]):
        assert sum(one.arrived for one in parts) == len(trace)
        assert sum(one.good for one in parts) == report.total.good
    assert report.total.good <= report.total.finished
    assert sum(report.total.refusals.values()) <= len(trace) + report.total.retries
    assert report.ended_at_seconds >= (trace[-1].at_seconds if trace else 0.0)
    for use in report.replicas:
        assert 0 <= use.busy_share <= 1 + 1e-9
        assert 0 <= use.kv_held_share <= 1 + 1e-9


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("engine", STAGES)
@given(
    trace=TRACES, copies=st.integers(1, 2), clients=st.sampled_from(ClientModel), drain=st.sampled_from([3.0, 600.0])
)
@settings(max_examples=15)
def test_every_request_has_one_ending_and_no_invariant_breaks(
    gate: str, engine: str, trace: list[TracedRequest], copies: int, clients: ClientModel, drain: float
) -> None:
    setting = STAGES[engine](copies)
    report = run(setting, trace, GATES[gate](setting), clients, plan=RunPlan(EDGES, drain, look_seconds=1.0))
    check(report, trace)
    assert (report.ledger.only_in_gate, report.ledger.only_in_engine) == (0, 0)
    if report.drained:
        assert setting.traced == {}


@pytest.mark.parametrize("engine", ["small tgi", "vllm", "limited vllm"])
@given(trace=TRACES, clients=st.sampled_from(ClientModel), seed=st.integers(0, 3))
@settings(max_examples=10)
def test_looking_changes_nothing_and_one_seed_gives_one_run(
    engine: str, trace: list[TracedRequest], clients: ClientModel, seed: int
) -> None:
    def told(look_seconds: float) -> str:
        plan = RunPlan(EDGES, look_seconds=look_seconds)
        found = run(STAGES[engine](2), trace, clients=clients, seed=seed, plan=plan).to_dict()
        if look_seconds != 10.0:
            del found["timeline"], found["ledger"]
        return json.dumps(found)

    assert told(10.0) == told(10.0)
    often, seldom = json.loads(told(0.37)), json.loads(told(1000.0))
    for uses in (often.pop("replicas"), seldom.pop("replicas")):
        assert len(uses) == 2  # integrals over other pieces differ in their last digits
    assert often == seldom
