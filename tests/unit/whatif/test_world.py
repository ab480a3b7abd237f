"""The loop: what happens next, when it ends, and what it tells; times worked out by hand on plain replicas.

A plain replica takes 0.01 s for each prompt token and 0.05 s for each token after the first.
"""

import random
from collections.abc import Iterator

import pytest

from fakes.plain_replica import PlainReplica
from fakes.stages import EDGES, OpenGate, ShutGate, run, stage, stage_of, traced
from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict
from llmshed.admission.events import Arrived, Event, FirstToken, Tick
from llmshed.admission.reasons import Reason
from llmshed.admission.verdict import Decision, Verdict
from llmshed.whatif.setting import Setting
from llmshed.whatif.world import RunPlan, StuckError, simulate
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest

FULL = Verdict(Decision.REFUSE, Reason.TOKEN_BUDGET_EXHAUSTED, retry_after_seconds=1.0)


class HoldingGate(OpenGate):
    """Queues each request until a tick at a fixed time after its arrival, and then dispatches or evicts it."""

    def __init__(self, setting: Setting, hold_seconds: float, *, evict: bool = False) -> None:
        super().__init__(setting)
        self.hold_seconds, self.evict = hold_seconds, evict
        self.line: list[tuple[float, int, Dispatch]] = []

    def handle(self, event: Event, now: float) -> list[Action]:
        actions = super().handle(event, now)
        if isinstance(event, Arrived):
            (dispatch,) = actions
            assert isinstance(dispatch, Dispatch)
            self.line.append((now + self.hold_seconds, event.request.key, dispatch))
            return [Enqueue(event.request.key, "main", dispatch.verdict)]
        while self.line and self.line[0][0] <= now:
            _, key, dispatch = self.line.pop(0)
            actions.append(Evict(key, FULL) if self.evict else dispatch)
        return actions

    def next_wakeup(self) -> float | None:
        return self.line[0][0] if self.line else None


def test_a_run_by_hand() -> None:
    setting = stage_of(PlainReplica)
    report = run(setting, [traced(0.0, 10, 5), traced(1.0, 20, 5), traced(10.0, 10, 1)], OpenGate(setting))
    assert (report.offered_seconds, report.drained) == (10.0, True)
    assert report.ended_at_seconds == pytest.approx(10.1)
    total = report.total
    assert (total.arrived, total.finished, total.good) == (3, 3, 3)
    assert total.ttft_seconds.most == pytest.approx(0.2)
    assert total.tpot_seconds.most == pytest.approx(0.05)
    assert total.goodput_tokens_per_second == pytest.approx((15 + 25 + 11) / 10)
    assert total.throughput_output_tokens_per_second == pytest.approx(1.0), "the last one came as the window closed"
    assert report.replicas[0].mean_sequences == pytest.approx((0.3 + 0.4) / 10)
    assert report.ledger.broken_invariants_count == 0


def test_output_of_what_still_runs_counts_up_to_the_last_arrival() -> None:
    setting = stage_of(PlainReplica)
    report = run(setting, [traced(0.0, 10, 1000, asked_output_tokens=1000), traced(1.12)], OpenGate(setting))
    # First token at 0.1 s, a further one each 0.05 s: 21 by 1.12 s.
    assert report.total.throughput_output_tokens_per_second == pytest.approx(21 / 1.12)
    assert report.total.throughput_input_tokens_per_second == pytest.approx(10 / 1.12)


def test_the_gateways_own_time_comes_before_the_gate() -> None:
    setting = stage_of(PlainReplica, gateway_seconds_per_request=0.5, gateway_seconds_per_input_token=0.01)
    gate = OpenGate(setting)
    report = run(setting, [traced(0.0, 10), traced(0.0, 10)], gate)
    assert [at for at, event in gate.seen if isinstance(event, Arrived)] == pytest.approx([0.6, 1.2])
    assert report.total.gate_wait_seconds.most == pytest.approx(1.2)
    assert report.total.ttft_seconds.most == pytest.approx(1.3)
    assert report.total.good == 1, "the second user waited for more than a second"


def test_a_gate_that_holds_is_woken_when_it_wants() -> None:
    setting = stage_of(PlainReplica)
    gate = HoldingGate(setting, 0.4)
    report = run(setting, [traced(0.0), traced(0.1)], gate)
    assert [at for at, event in gate.seen if isinstance(event, Tick)] == pytest.approx(
        [0.4]
    )  # 0.5 came with the first token
    assert report.total.finished == 2
    assert report.total.ttft_seconds.most == pytest.approx(0.5)


def test_what_a_gate_evicts_is_refused_and_may_come_back() -> None:
    setting = stage_of(PlainReplica, retry_jitter_ratio=0.0)
    report = run(setting, [traced(0.0)], HoldingGate(setting, 0.4, evict=True), ClientModel.SDK)
    assert (report.total.retries, report.total.given_up) == (2, 1)
    assert report.total.refusals == {"token_budget_exhausted": 3}
    assert report.ended_at_seconds == pytest.approx(0.4 + 1.4 + 1.4)


def test_at_equal_times_replicas_go_before_requests() -> None:
    setting = stage_of(PlainReplica)
    gate = OpenGate(setting)
    run(setting, [traced(0.0, 100), traced(1.0, 10)], gate)  # the first token of the first comes at 1.0 s
    assert [type(event) for at, event in gate.seen if at == 1.0] == [FirstToken, Arrived]


def test_the_run_ends_when_the_time_to_drain_is_over_and_what_is_left_is_counted() -> None:
    setting = stage_of(PlainReplica)
    trace = [traced(0.0, 10, 10_000, asked_output_tokens=10_000), traced(1.0), traced(1.0, 900)]
    report = run(setting, trace, OpenGate(setting), plan=RunPlan(EDGES, drain_seconds=5.0))
    assert (report.drained, report.ended_at_seconds) == (False, 6.0)
    assert (report.total.finished, report.total.unfinished) == (1, 2)
    assert report.total.starvation.longest_wait_seconds == pytest.approx(5.0)
    assert report.ledger.broken_invariants_count == 0


def test_a_request_that_is_never_answered_is_unfinished_and_the_run_ends() -> None:
    setting = stage_of(PlainReplica)
    report = run(setting, [traced(0.0)], HoldingGate(setting, float("inf")), plan=RunPlan(EDGES, drain_seconds=5.0))
    assert (report.drained, report.total.unfinished) == (False, 1)


def test_an_empty_trace_gives_an_empty_report() -> None:
    setting = stage()
    report = run(setting, [])
    assert (report.requests, report.total.attainment, report.drained, report.imputed_share) == (0, None, True, 0.0)
    assert report.lanes == {}
    assert report.fairness.jain_served_tokens is None


def test_a_trace_of_one_instant_has_its_rates_over_the_whole_run() -> None:
    setting = stage_of(PlainReplica)
    report = run(setting, [traced(0.0, 10, 3), traced(0.0, 10, 3)], OpenGate(setting))
    assert report.offered_seconds == pytest.approx(0.2)
    assert report.total.throughput_output_tokens_per_second == pytest.approx(30.0)


def test_a_request_that_goes_back_in_time_arrives_with_the_one_before_it() -> None:
    setting = stage_of(PlainReplica)
    gate = OpenGate(setting)
    run(setting, [traced(5.0), traced(3.0)], gate)
    assert [at for at, event in gate.seen if isinstance(event, Arrived)] == [5.0, 5.0]


def test_the_trace_is_read_one_request_ahead_and_no_further() -> None:
    setting = stage_of(PlainReplica)
    gate = OpenGate(setting)

    def trace() -> Iterator[TracedRequest]:
        for number in range(5):
            assert sum(isinstance(event, Arrived) for _, event in gate.seen) >= number - 1
            yield traced(float(number))

    assert run(setting, trace(), gate).requests == 5


def test_a_silence_of_years_costs_no_looks() -> None:
    setting = stage_of(PlainReplica)
    report = run(setting, [traced(0.0), traced(1e9), traced(1e9 + 25.0)], OpenGate(setting))
    assert report.total.finished == 3
    assert report.ledger.looks < 10


def test_guesses_are_told_as_a_share() -> None:
    setting = stage_of(PlainReplica)
    report = run(setting, [traced(0.0, imputed=True), traced(1.0), traced(2.0), traced(3.0)], OpenGate(setting))
    assert report.imputed_share == 0.25


def test_refusals_cost_nothing_and_are_told() -> None:
    setting = stage_of(PlainReplica)
    report = run(setting, [traced(float(n)) for n in range(4)], ShutGate(setting))
    assert (report.total.given_up, report.total.attainment, report.replicas[0].dispatched) == (4, 0.0, 0)
    assert report.timeline[-1].refused == 4


def test_progress_is_told_at_each_look() -> None:
    setting = stage_of(PlainReplica)
    heard: list[float] = []
    trace = [traced(float(at)) for at in range(35)]

    rng = random.Random(0)  # noqa: S311 - one seed, one run
    simulate(setting, OpenGate(setting), trace, ClientModel.NONE, rng, RunPlan(EDGES), heard.append)
    assert heard[:4] == [0.0, 10.0, 20.0, 30.0]


class RestlessGate(OpenGate):
    """Wants to be woken now, always."""

    def next_wakeup(self) -> float | None:
        return 0.0


def test_a_gate_that_turns_in_place_is_found_out() -> None:
    setting = stage_of(PlainReplica)
    with pytest.raises(StuckError, match="the gate asked for 0 s"):
        run(setting, [traced(1.0)], RestlessGate(setting))


def test_the_true_length_is_known_while_a_request_lives_and_not_after() -> None:
    setting = stage_of(PlainReplica)
    gate = OpenGate(setting)
    run(setting, [traced(0.0, 10, 5)], gate)
    with pytest.raises(KeyError):
        setting.truth(1)


def test_a_world_with_work_is_looked_at_steadily() -> None:
    setting = stage_of(PlainReplica)
    report = run(setting, [traced(0.0, 10, 2001, asked_output_tokens=2001)], OpenGate(setting))
    assert [point.at_seconds for point in report.timeline][:-1] == [10.0 * number for number in range(11)]
    assert [point.running for point in report.timeline][1:-1] == [1] * 10
