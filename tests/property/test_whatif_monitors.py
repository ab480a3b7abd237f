"""Whatever comes at once, of whatever class and size: no promise about who is refused and who waits is broken.

Small replicas with a prefill rate, short waits and few places, so that everything that can bind does.
"""

from dataclasses import replace
from random import Random

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
    input_tokens=st.one_of(st.just(1), st.integers(1, 500), st.integers(1, 7000)),
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


def one(
    at: float, prompt: int, true: int, asked: int | None, kind: str, copies: int, *, streamed: bool
) -> TracedRequest:
    intent, priority_class = kind.split()
    return TracedRequest(
        at, prompt, true, asked, "red", Intent(intent), PriorityClass(priority_class), streamed=streamed, copies=copies
    )


FOUND = {
    "a holder of the shadow reservation stands behind a higher class of its lane": (
        "vllm",
        [
            one(0.0, 3350, 255, None, "interactive low", 1, streamed=False),
            one(0.0, 112, 351, 738, "bulk low", 1, streamed=True),
            one(0.0, 364, 9, None, "bulk normal", 1, streamed=False),
            one(6.259, 671, 145, None, "bulk normal", 1, streamed=False),
        ],
    ),
    "a bulk holder behind another keeps an interactive request out": (
        "vllm",
        [
            one(0.0, 385, 118, None, "interactive high", 1, streamed=True),
            one(0.0, 3918, 281, 336, "interactive normal", 1, streamed=True),
            one(0.0, 5450, 273, 474, "bulk low", 1, streamed=False),
            one(0.257, 160, 389, None, "bulk normal", 1, streamed=False),
            one(1.0, 1988, 91, None, "bulk high", 1, streamed=True),
            one(1.159, 3194, 40, None, "interactive normal", 1, streamed=False),
        ],
    ),
    "a bulk holder keeps an interactive request out where prompts block": (
        "tgi",
        [
            one(0.0, 3172, 6, None, "interactive normal", 1, streamed=True),
            one(0.0, 4421, 198, 805, "interactive low", 1, streamed=False),
            one(0.0, 366, 249, 908, "bulk high", 3, streamed=True),
            one(1.0, 6184, 267, 277, "bulk high", 1, streamed=False),
            one(4.0, 446, 57, None, "interactive normal", 3, streamed=True),
        ],
    ),
}
"""Crowds in which a promise was once broken, by what broke it; each is as small as it can be."""


def broken(setting: Setting, trace: list[TracedRequest], clients: ClientModel) -> tuple[str, ...]:
    gate = WatchedGate(build_controller(setting), setting.policy, setting.specs)
    report = run(setting, trace, gate, clients, plan=RunPlan(EDGES, look_seconds=5.0))
    assert report.drained
    return report.ledger.broken_invariants


@pytest.mark.parametrize("found", FOUND)
def test_what_once_broke_a_promise_does_no_more(found: str) -> None:
    manners, trace = FOUND[found]
    assert broken(crowded("shared", 1, blocks=manners == "tgi"), trace, ClientModel.NONE) == ()


BURSTS = [(seed, clients) for seed in range(3) for clients in ClientModel]
MORE_BURSTS = [pytest.param(seed, clients, marks=pytest.mark.soak) for seed in range(3, 60) for clients in ClientModel]


@pytest.mark.slow
@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize(("seed", "clients"), [*BURSTS, *MORE_BURSTS])
def test_no_promise_is_broken_in_a_burst(seed: int, clients: ClientModel, copies: int) -> None:
    """Sixty small requests at two instants, more than there are seats and places, and clients that come again."""
    source = Random(seed)  # noqa: S311 - a seeded crowd, no secret
    trace = [
        one(
            source.choice([0.0, 0.05]),
            source.choice([1, source.randint(1, 500)]),
            source.choice([1, source.randint(1, 400)]),
            source.choice([None, source.randint(1, 1000)]),
            f"{source.choice(list(Intent))} {source.choice(list(PriorityClass))}",
            source.choice([1, 1, 3]),
            streamed=source.random() < 0.5,
        )
        for _ in range(60)
    ]
    trace.sort(key=lambda request: request.at_seconds)
    assert broken(crowded("shared", copies, blocks=seed % 2 == 0), trace, clients) == ()


@pytest.mark.slow
@pytest.mark.parametrize("lanes", ["shared", "bulk"])
@given(
    trace=TRACES,
    copies=st.integers(1, 2),
    manners=st.sampled_from(["tgi", "vllm"]),
    clients=st.sampled_from(ClientModel),
)
@settings(max_examples=8)
def test_no_promise_is_broken(
    lanes: str, trace: list[TracedRequest], copies: int, manners: str, clients: ClientModel
) -> None:
    assert broken(crowded(lanes, copies, blocks=manners == "tgi"), trace, clients) == ()
