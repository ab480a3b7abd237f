"""The preemption cascade of vLLM through the whole world: no gateway sees it in tokens a second, and ours prevents it.

A sequence that loses its KV is computed anew, which takes the very time that its KV was to give to others.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from fakes.stages import run, stage, traced
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.whatif.gates.table import build_gate
from llmshed.whatif.report import ReplicaUse, RunReport
from llmshed.workload.request import TracedRequest

REPLICA = VllmParameters(
    max_model_len=4096,
    kv_tokens=24_000,
    step_times=StepTimes(0.009, 1 / 20_000, 0.000_03, seconds_per_resident_token=2e-8),
)
"""About 9 ms a token for a lone stream, and KV for some twenty of the answers below at their longest."""
POOL = """
[lanes.interactive]
max_output_tokens = 2048
tpot_objective_seconds = 0.015
[[pools]]
replicas = [{ name = "a", url = "simulated:" }]
"""
CALM, OVERLOAD = 1.5, 4.0
"""Requests a second that the KV just holds, and of which it holds a third."""

pytestmark = pytest.mark.slow


def load(per_second: float) -> Iterator[TracedRequest]:
    """Yield 200 s of short prompts with long answers, whose ceilings are exact."""
    rng, at = random.Random(5), 0.0  # noqa: S311 - one seed, one load
    while (at := at + rng.expovariate(per_second)) < 200.0:
        yield traced(at, rng.randint(20, 60), rng.randint(800, 1600))


@cache
def under(policy: str, per_second: float, parameters: VllmParameters = REPLICA) -> RunReport:
    setting = stage(text=POOL, parameters=parameters)
    report = run(setting, load(per_second), build_gate(policy, setting))
    assert report.ledger.broken_invariants == ()
    return report


def replica(report: RunReport) -> ReplicaUse:
    (only,) = report.replicas
    return only


def test_without_a_gateway_tokens_stay_preemptions_rise_and_goodput_falls() -> None:
    calm, overload = under("none", CALM).total, under("none", OVERLOAD).total
    assert calm.attainment == 1
    assert replica(under("none", CALM)).preemptions_per_minute == 0
    assert replica(under("none", OVERLOAD)).preemptions_per_minute > 500  # 958
    assert overload.throughput_output_tokens_per_second > calm.throughput_output_tokens_per_second  # 2,912 and 1,813
    assert overload.goodput_tokens_per_second < 0.3 * calm.goodput_tokens_per_second  # 268 and 1,944
    assert overload.refusals == {}, "vLLM has no limit of its own unless it is given one"


def test_through_ours_nobody_is_preempted_and_whoever_is_let_in_is_served_well() -> None:
    overload = under("ours", OVERLOAD)
    assert replica(overload).preemptions == 0
    assert overload.total.good == overload.total.finished
    assert set(overload.total.refusals) == {"token_budget_exhausted"}
    assert overload.total.goodput_tokens_per_second > 5 * under("none", OVERLOAD).total.goodput_tokens_per_second
    assert overload.total.goodput_tokens_per_second > 0.9 * under("none", CALM).total.goodput_tokens_per_second


@pytest.mark.parametrize("policy", ["request_limit", "thresholds"])
def test_seats_and_polled_kv_do_not_prevent_it(policy: str) -> None:
    overload = under(policy, OVERLOAD)
    assert replica(overload).preemptions_per_minute > 500
    assert overload.total.goodput_tokens_per_second < 0.3 * under("ours", OVERLOAD).total.goodput_tokens_per_second


def test_the_queue_limit_of_vllm_itself_refuses_late_and_does_not_prevent_it_either() -> None:
    limited = under("none", OVERLOAD, replace(REPLICA, max_num_queued_reqs=64))
    # A replica's use ends with the offered time, which is the last arrival; the gateway passes that request on later.
    assert limited.requests - replica(limited).dispatched == 1
    assert 0 <= limited.total.refusals["engine_overloaded"] - replica(limited).refused <= 1
    assert replica(limited).refused > 200  # 289
    assert replica(limited).preemptions_per_minute > 500
    assert limited.total.goodput_tokens_per_second < 0.3 * under("ours", OVERLOAD).total.goodput_tokens_per_second
