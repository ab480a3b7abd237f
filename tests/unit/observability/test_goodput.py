"""Which requests count against the objectives, and which meet them."""

import pytest

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, Lane
from llmshed.admission.verdict import Decision
from llmshed.config.lanes import LaneSettings
from llmshed.observability.decisions import DecisionLine, Waits
from llmshed.observability.endings import Ending
from llmshed.observability.goodput import counted_lane, met_objectives, objectives_of

OBJECTIVES = objectives_of(LaneSettings())  # 2 s and 0.1 s interactive, 120 s and 0.1 s bulk


def ended(
    ending: Ending,
    *,
    lane: Lane | None = Lane.INTERACTIVE,
    intent: Intent | None = None,
    status: int = 200,
    reason: Reason | None = None,
    waits: Waits | None = None,
    output_tokens: int | None = 11,
    copies: int = 1,
) -> DecisionLine:
    return DecisionLine(
        time_seconds=0.0,
        request_id="r",
        route="/generate",
        status=status,
        ending=ending,
        termination="--",
        lane=lane,
        intent=intent,
        decision=Decision.ADMIT,
        reason=reason,
        prompt_tokens=(5,),
        copies=copies,
        output_tokens=output_tokens,
        waits=waits or Waits(),
    )


def test_the_shipped_objectives_are_those_of_the_lanes() -> None:
    assert (OBJECTIVES[Lane.INTERACTIVE].ttft_seconds, OBJECTIVES[Lane.BULK].ttft_seconds) == (2.0, 120.0)
    assert Lane.OVERFLOW not in OBJECTIVES


@pytest.mark.parametrize(
    ("ttft_seconds", "tpot_seconds", "good"),
    [(2.0, 0.1, True), (2.001, 0.01, False), (0.1, 0.101, False), (1.0, None, True)],
)
def test_a_stream_is_good_when_it_meets_both_objectives(
    ttft_seconds: float, tpot_seconds: float | None, *, good: bool
) -> None:
    waits = Waits(ttft_seconds=ttft_seconds, tpot_seconds=tpot_seconds, total_seconds=99.0)
    assert met_objectives(ended(Ending.FINISHED, waits=waits), OBJECTIVES) is good


@pytest.mark.parametrize(("total_seconds", "good"), [(3.0, True), (3.01, False)])
def test_a_whole_answer_has_the_time_of_a_stream_that_met_both(total_seconds: float, *, good: bool) -> None:
    # 11 tokens: 2 s to the first, then 10 x 0.1 s; two copies of 11 run beside each other.
    waits = Waits(total_seconds=total_seconds)
    assert met_objectives(ended(Ending.FINISHED, waits=waits), OBJECTIVES) is good
    assert met_objectives(ended(Ending.FINISHED, waits=waits, output_tokens=22, copies=2), OBJECTIVES) is good


def test_an_answer_of_unknown_times_is_not_called_good() -> None:
    assert met_objectives(ended(Ending.FINISHED), OBJECTIVES) is False


@pytest.mark.parametrize("ending", [Ending.REFUSED, Ending.EVICTED])
@pytest.mark.parametrize(
    ("reason", "counts"),
    [
        (Reason.TOKEN_BUDGET_EXHAUSTED, True),
        (Reason.CONCURRENCY_LIMIT, True),
        (Reason.DEADLINE_INFEASIBLE, True),
        (Reason.COUNTING_BACKLOG, True),
        (Reason.NO_REPLICA, True),
        (Reason.DRAINING, True),
        (Reason.TENANT_QUOTA, False),
        (Reason.MALFORMED, False),
        (Reason.CONTEXT_LIMIT, False),
        (Reason.UNAUTHENTICATED, False),
    ],
)
def test_a_refusal_counts_as_missed_when_the_fleet_had_too_little(
    ending: Ending, reason: Reason, *, counts: bool
) -> None:
    verdict = met_objectives(ended(ending, status=reason.row.status, reason=reason), OBJECTIVES)
    assert verdict is (False if counts else None)


def test_failures_count_as_missed_and_a_client_that_left_or_erred_does_not() -> None:
    failed = ended(Ending.FAILED, reason=Reason.UPSTREAM_ERROR, waits=Waits(ttft_seconds=0.1))
    assert met_objectives(failed, OBJECTIVES) is False
    mistaken = ended(Ending.FAILED, status=422, reason=Reason.UNSUPPORTED_FIELD)
    assert met_objectives(mistaken, OBJECTIVES) is None
    assert met_objectives(ended(Ending.CANCELLED, status=0), OBJECTIVES) is None


def test_routes_that_generate_nothing_do_not_count() -> None:
    assert met_objectives(ended(Ending.FINISHED, lane=None), OBJECTIVES) is None


def test_work_refused_before_it_was_classified_counts_by_intent_else_as_interactive() -> None:
    assert counted_lane(ended(Ending.REFUSED, lane=None, intent=Intent.BULK)) is Lane.BULK
    assert counted_lane(ended(Ending.REFUSED, lane=None)) is Lane.INTERACTIVE
    assert met_objectives(ended(Ending.REFUSED, lane=None, reason=Reason.COUNTING_BACKLOG), OBJECTIVES) is False


def test_overflow_promises_nothing() -> None:
    refused = ended(Ending.REFUSED, lane=Lane.OVERFLOW, reason=Reason.NO_REPLICA)
    assert met_objectives(refused, OBJECTIVES) is None
