"""Public incidents in short, and prompts that are larger than anything around them; `bench/incidents.py` has the whole.

What clients are told and what engines do is virtual; the controller is the daemon's own, under all monitors.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import merge
from random import Random

import pytest
from incident_runs import BURST_REPLICA, BurstOutcome, run_bursts, run_surge
from incident_traffic import Bursts, Surge, interactive
from staged import SHARED, shipped_stage, watched_controller

from llmshed.admission.actions import Action, Dispatch, Evict, Refuse
from llmshed.admission.events import Arrived, Event
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.whatif.gate import Gate
from llmshed.whatif.report import RunReport
from llmshed.whatif.setting import Setting
from llmshed.whatif.world import RunPlan, simulate
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest

SHORT = Bursts(cycles=1, batches=1, batch_requests=60, burst_seconds=30.0, quiet_seconds=10.0)
SEPARATE = """
[[pools]]
name = "chat"
lanes = ["interactive"]
replicas = [{ name = "a", url = "simulated:" }]
[[pools]]
name = "batch"
lanes = ["bulk"]
replicas = [{ name = "b", url = "simulated:" }]
"""
BULK_RESIDENCE_SECONDS = 54.0
"""1.5 times 30 % of 120 s, the shipped default."""
LARGE_TOKENS = 60_000
LARGE_AT = 20.0


@pytest.fixture(scope="module")
def bursts() -> BurstOutcome:
    return run_bursts(SHORT)


@pytest.mark.slow
def test_batches_beside_bursts_are_all_done_and_nothing_is_untrue(bursts: BurstOutcome) -> None:
    assert bursts.batch_done_share == 1.0
    assert bursts.beside.lanes["interactive"].given_up == 0
    ledger = bursts.beside.ledger
    assert (ledger.broken_invariants, ledger.only_in_gate, ledger.only_in_engine) == ((), 0, 0)


@pytest.mark.slow
def test_a_surge_leaves_nothing_behind() -> None:
    """A quarter of the replicas and of the traffic: about 3 requests a second are what two of them carry."""
    outcome = run_surge(Surge(1.5, 6.0, calm_seconds=100.0, surge_seconds=60.0), replicas=2)
    ledger = outcome.report.ledger
    assert ledger.looks > 200
    assert (ledger.broken_invariants, ledger.only_in_gate, ledger.only_in_engine) == ((), 0, 0)
    assert outcome.report.total.refusals != {}
    assert outcome.after_p95 <= 1.1 * outcome.before_p95


@dataclass(slots=True)
class LargeWatch:
    """What a gate says of the one large request, with the time since it came."""

    gate: Gate
    key: int | None = None
    came_at: float = 0.0
    said: list[tuple[float, Action]] = field(default_factory=list)

    def handle(self, event: Event, now: float) -> list[Action]:
        if isinstance(event, Arrived) and event.request.input_tokens == LARGE_TOKENS:
            self.key, self.came_at = event.request.key, now
        actions = self.gate.handle(event, now)
        self.said += [
            (now - self.came_at, action)
            for action in actions
            if isinstance(action, Dispatch | Refuse | Evict) and action.key == self.key
        ]
        return actions

    def next_wakeup(self) -> float | None:
        return self.gate.next_wakeup()

    def check(self) -> tuple[str, ...]:
        return self.gate.check()


def stream(tokens: int, per_second: float, seconds: float) -> Iterable[TracedRequest]:
    """Bulk prompts of one size at even times, and the large one among them."""
    small = [
        TracedRequest(number / per_second, tokens, 200, asked_output_tokens=256, intent=Intent.BULK)
        for number in range(int(seconds * per_second))
    ]
    large = TracedRequest(LARGE_AT, LARGE_TOKENS, 200, asked_output_tokens=256, intent=Intent.BULK)
    return sorted([*small, large], key=lambda one: one.at_seconds)


def large_among(setting: Setting, trace: Iterable[TracedRequest]) -> tuple[RunReport, list[tuple[float, Action]]]:
    watch = LargeWatch(watched_controller(setting))
    rng = Random(0)  # noqa: S311 - one seed, one run
    return simulate(setting, watch, trace, ClientModel.NONE, rng, RunPlan((500, 1500, 4000))), watch.said


@pytest.mark.slow
@pytest.mark.parametrize("per_second", [3.0, 5.0])
def test_a_large_prompt_starts_in_a_bulk_pool(per_second: float) -> None:
    """An H100 works through about 4.8 prompts of 5,000 tokens a second."""
    setting = shipped_stage(BURST_REPLICA, 1, SEPARATE)
    report, said = large_among(setting, stream(5000, per_second, 80.0))
    (waited, action), *_ = said
    assert isinstance(action, Dispatch)
    assert waited <= BULK_RESIDENCE_SECONDS
    assert report.drained
    assert report.ledger.broken_invariants == ()


def vllm_stage() -> Setting:
    """Return a shared pool of one vLLM with the numbers of the same GPU."""
    shipped = shipped_stage(BURST_REPLICA, 1)
    parameters = VllmParameters(
        max_num_batched_tokens=8192,
        max_model_len=131_072,
        kv_tokens=shipped.parameters.kv_tokens,
        step_times=shipped.parameters.step_times,
    )
    return shipped_stage(BURST_REPLICA, 1, engine=parameters)


@pytest.mark.slow
def test_a_large_prompt_starts_on_a_shared_vllm() -> None:
    chat = interactive(Random(1), 0.0, 80.0, 2.0)  # noqa: S311 - one seed, one trace
    trace = merge(stream(5000, 1.0, 80.0), chat, key=lambda one: one.at_seconds)
    report, said = large_among(vllm_stage(), trace)
    (waited, action), *_ = said
    assert isinstance(action, Dispatch)
    assert waited <= BULK_RESIDENCE_SECONDS
    assert report.drained
    assert report.ledger.broken_invariants == ()


def test_a_prompt_beyond_the_bound_of_a_shared_tgi_is_refused_for_good() -> None:
    setting = shipped_stage(BURST_REPLICA, 1, SHARED)
    (bound,) = {spec.max_shared_prompt_tokens for spec in setting.specs}
    assert bound is not None
    assert bound < LARGE_TOKENS
    _, said = large_among(setting, [TracedRequest(LARGE_AT, LARGE_TOKENS, 200, 256, intent=Intent.BULK)])
    ((_, action),) = said
    assert isinstance(action, Refuse)
    assert action.verdict.reason is Reason.LANE_LIMIT


@pytest.mark.parametrize("share", [0.05, 0.2, 0.34])
def test_an_idle_replica_with_a_full_queue_goes_on(share: float) -> None:
    """Prompts that are a good part of all that the replica lends, more than the queue holds, and nobody after them."""
    bounds = "[lanes.bulk]\nqueue_requests = 2\nqueue_tokens = 1_000_000\n"
    setting = shipped_stage(BURST_REPLICA, 1, bounds + SEPARATE)
    bulk = next(spec for spec in setting.specs if spec.pool == "batch")
    tokens = int(share * bulk.budget.safe_budget_tokens)
    burst = [TracedRequest(1.0, tokens, 100, 128, intent=Intent.BULK) for _ in range(20)]
    report, _ = large_among(setting, burst)
    assert report.drained
    assert report.ledger.broken_invariants == ()
    assert report.total.finished >= 3
    assert "queue_full" in report.total.refusals
