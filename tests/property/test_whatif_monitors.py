"""Whatever comes at once, of whatever class and size: no promise about who is refused and who waits is broken.

Small replicas with a prefill rate, short waits and few places, so that everything that can bind does.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.stages import EDGES, GPU, run, stage
from llmshed.admission.policy import ReplicaSpec, TenantPolicy
from llmshed.admission.request import Intent, PriorityClass
from llmshed.whatif.monitors.watched import WatchedGate
from llmshed.whatif.setting import Setting
from llmshed.whatif.staging import build_controller
from llmshed.whatif.world import RunPlan
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest

POOL = """
[lanes.interactive]
queue_requests = 6
[lanes.bulk]
queue_requests = 6
max_residence_seconds = 8
ttft_objective_seconds = 20
[[pools]]
gross_ceiling_tokens = 20_000
max_concurrent_sequences = 12
lanes = LANES
[[pools.replicas]]
name = "a"
url = "simulated:"
"""
TENANTS = {
    name: TenantPolicy(name, top_class=PriorityClass.HIGH, weight=weight)
    for name, weight in (("red", 1.0), ("blue", 3.0))
}
LANES = {"shared": '["interactive", "bulk"]', "bulk": '["bulk"]'}

REQUESTS = st.builds(
    TracedRequest,
    at_seconds=st.one_of(st.floats(0, 12), st.sampled_from([0.0, 1.0, 4.0])),
    input_tokens=st.one_of(st.integers(1, 500), st.integers(1, 7000)),
    true_output_tokens=st.integers(1, 400),
    asked_output_tokens=st.one_of(st.none(), st.integers(1, 1000)),
    tenant=st.sampled_from(["red", "blue"]),
    intent=st.sampled_from(Intent),
    priority_class=st.sampled_from(PriorityClass),
    streamed=st.booleans(),
    copies=st.sampled_from([1, 1, 1, 3]),
)
TRACES = st.lists(REQUESTS, min_size=10, max_size=60).map(lambda some: sorted(some, key=lambda one: one.at_seconds))


def metered(spec: ReplicaSpec, *, blocks: bool) -> ReplicaSpec:
    budget = replace(
        spec.budget,
        prefill_tokens_per_second=8000.0,
        prefill_inflight_tokens=8000,
        decode_seconds_per_token=0.012,
    )
    return replace(spec, budget=budget, prefill_blocks_starts=blocks)


def crowded(lanes: str, copies: int, *, blocks: bool) -> Setting:
    setting = stage(copies, text=POOL.replace("LANES", LANES[lanes]), parameters=replace(GPU, kv_tokens=20_000))
    policy = replace(setting.policy, tenants=TENANTS)
    return replace(
        setting,
        policy=policy,
        default_tenant="red",
        specs=tuple(metered(spec, blocks=blocks) for spec in setting.specs),
    )


@pytest.mark.slow
@pytest.mark.parametrize("lanes", LANES)
@given(
    trace=TRACES,
    copies=st.integers(1, 2),
    manners=st.sampled_from(["tgi", "vllm"]),
    clients=st.sampled_from(ClientModel),
)
@settings(max_examples=25)
def test_no_promise_is_broken(
    lanes: str, trace: list[TracedRequest], copies: int, manners: str, clients: ClientModel
) -> None:
    setting = crowded(lanes, copies, blocks=manners == "tgi")
    gate = WatchedGate(build_controller(setting), setting.policy, setting.specs)
    report = run(setting, trace, gate, clients, plan=RunPlan(EDGES, look_seconds=5.0))
    assert report.ledger.broken_invariants == ()
    assert report.drained
