"""What a run is counted as: goodput against a hand calculation, and what does not count."""

import pytest

from llmshed.loadtest.open_loop import Visit
from llmshed.loadtest.replies import NOTHING_TOLD, Reply, Told
from llmshed.loadtest.tally import NO_LANE, Tally
from llmshed.loadtest.yardstick import Yardstick
from llmshed.workload.asks import Ask, Outcome, Sample

ASK = Ask("a", 100, 10, runs_to_ceiling=False, lane=None)


def reply(
    outcome: Outcome = Outcome.FINISHED,
    *,
    status: int | None = 200,
    times: tuple[float, ...] = (),
    reason: str = "",
    told: Told = NOTHING_TOLD,
    planned_at: float = 10.0,
) -> Reply:
    end = times[-1] if times else planned_at + 0.01
    return Reply(Sample(ASK, planned_at, planned_at, times, end, outcome, status, len(times)), told, 0, reason)


def visit(*replies: Reply) -> Visit:
    return Visit(replies[0].sample.planned_at, replies)


def tallied(*visits: Visit) -> Tally:
    tally = Tally(Yardstick(tpot_seconds=0.1))
    for one in visits:
        tally.add(one)
    return tally


def test_good_is_what_met_both_objectives() -> None:
    tally = tallied(
        visit(reply(times=(10.9, 11.0, 11.0))),
        visit(reply(times=(11.1, 11.2))),  # its first token was late
        visit(reply(times=(10.5, 10.7))),  # 0.2 s a token
        visit(reply(times=(10.5,))),  # one token has no pace
    )
    lane = tally.lanes[NO_LANE]
    assert (lane.visits, lane.finished, lane.counted, lane.good, lane.attained) == (4, 4, 4, 2, 0.5)
    assert (lane.good_tokens, lane.output_tokens) == (103 + 101, 8)
    assert lane.ttft.most == pytest.approx(1.1)
    assert lane.end_to_end.most == pytest.approx(1.2)
    assert (lane.itl.count, lane.tpot.count) == (4, 3)
    assert tally.span_seconds == pytest.approx(1.2)


def test_a_request_that_was_sent_again_waits_from_its_first_instant() -> None:
    refused = reply(Outcome.REFUSED, status=429, reason="queue_full")
    served = reply(times=(12.0,), planned_at=11.9)
    lane = tallied(visit(refused, served)).lanes[NO_LANE]
    assert (lane.visits, lane.tries, lane.finished, lane.good) == (1, 2, 1, 0)
    assert lane.ttft.most == pytest.approx(2.0)
    assert lane.refusals == {"queue_full": 1}


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        (reply(Outcome.REFUSED, status=429, reason="token_budget_exhausted"), True),
        (reply(Outcome.REFUSED, status=429, reason="overloaded"), True),
        (reply(Outcome.FAILED, status=None, reason="connection_lost"), True),
        (reply(Outcome.FAILED, status=500, reason="generation"), True),
        (reply(Outcome.REFUSED, status=413, reason="lane_limit"), False),
        (reply(Outcome.REFUSED, status=429, reason="tenant_quota"), False),
        (reply(Outcome.FAILED, status=422, reason="validation"), False),
        (reply(Outcome.CANCELLED, status=200, times=(10.1,)), False),
    ],
)
def test_what_the_target_could_not_serve_counts_and_a_clients_own_fault_does_not(one: Reply, counts: bool) -> None:  # noqa: FBT001 - a case
    lane = tallied(visit(one)).lanes[NO_LANE]
    assert (lane.counted, lane.good, lane.finished) == (int(counts), 0, 0)
    assert lane.refusals.total() + lane.failures.total() + lane.cancelled == 1


def test_lanes_are_the_gateways_and_other_counts_are_told() -> None:
    tally = tallied(
        visit(reply(times=(10.1,), told=Told(lane="bulk", input_tokens=100))),
        visit(reply(times=(10.1,), told=Told(lane="interactive", input_tokens=117))),
    )
    assert list(tally.lanes) == ["bulk", "interactive"]
    assert tally.miscounted == 1


def test_nothing_is_nothing() -> None:
    assert (tallied().lanes, tallied().span_seconds) == ({}, 0.0)
