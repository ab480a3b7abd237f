"""From verdicts and errors to problems."""

import pytest

from llmshed.admission.budget import Equation
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, Request
from llmshed.admission.verdict import AcceptedMaximums, Advice, Decision, Verdict
from llmshed.engines.base import BodyError, EngineFailure, UpstreamFault
from llmshed.gateway.contract.problem import Problem

EQUATION = Equation(
    gross_ceiling_tokens=96_000,
    guard_band_tokens=9_600,
    active_tokens=58_000,
    queued_tokens=8_000,
    active_sequences=9,
    hard_cap_sequences=64,
)


def test_a_refusing_verdict_brings_its_numbers_and_the_request_its_counts() -> None:
    verdict = Verdict(
        Decision.REFUSE,
        Reason.TOKEN_BUDGET_EXHAUSTED,
        lane=Lane.BULK,
        equation=EQUATION,
        maximums=AcceptedMaximums(8000, 1000, 9000),
        retry_after_seconds=2.5,
        detail="20,400 are free",
        advice=(Advice.SPLIT,),
    )
    request = Request(1, "t", "m", prompt_tokens=(100, 300), copies=2, asked_output_tokens=50)
    problem = Problem.from_verdict(verdict, request)
    assert problem == Problem(
        Reason.TOKEN_BUDGET_EXHAUSTED,
        "20,400 are free",
        lane=Lane.BULK,
        maximums=AcceptedMaximums(8000, 1000, 9000),
        input_tokens=800,
        longest_prompt_tokens=300,
        requested_output_tokens=50,
        retry_after_seconds=2.5,
        advice=(Advice.SPLIT,),
        model="m",
        budget_tokens=86_400,
    )


@pytest.mark.parametrize(
    ("deadline", "first_token_deadline", "whole", "beginning"),
    [(101.5, None, 1.5, None), (None, 100.9, None, 0.9), (101.5, 100.9, 1.5, 0.9)],
)
def test_a_deadline_that_cannot_be_met_is_told_as_time_from_arrival(
    deadline: float | None, first_token_deadline: float | None, whole: float | None, beginning: float | None
) -> None:
    request = Request(1, "t", "m", (1,), arrived_at=100.0, deadline=deadline, first_token_deadline=first_token_deadline)
    late = Problem.from_verdict(Verdict(Decision.REFUSE, Reason.DEADLINE_INFEASIBLE), request)
    assert late.deadline_seconds == (None if whole is None else pytest.approx(whole))
    assert late.first_token_seconds == (None if beginning is None else pytest.approx(beginning))
    busy = Problem.from_verdict(Verdict(Decision.REFUSE, Reason.QUEUE_FULL), request)
    assert (busy.deadline_seconds, busy.first_token_seconds) == (None, None)


def test_an_early_gate_has_no_counts_and_a_verdict_without_words_uses_the_tables() -> None:
    problem = Problem.from_verdict(Verdict(Decision.REFUSE, Reason.DRAINING))
    assert problem == Problem(Reason.DRAINING, Reason.DRAINING.row.meaning)


def test_a_model_that_is_not_served_is_not_told_back_as_one_that_is() -> None:
    request = Request(1, "t", "whatever a client wrote", prompt_tokens=(1,))
    assert Problem.from_verdict(Verdict(Decision.REFUSE, Reason.NOT_FOUND), request).model is None


def test_a_verdict_that_admits_cannot_be_told_as_a_refusal() -> None:
    with pytest.raises(ValueError, match="no refusal"):
        Problem.from_verdict(Verdict(Decision.ADMIT))


def test_a_body_error_keeps_its_field_and_an_engine_failure_its_status() -> None:
    body = Problem.from_body_error(BodyError(Reason.DUPLICATE_KEY, "`n` twice", "n"))
    assert (body.reason, body.message, body.param, body.http_status) == (Reason.DUPLICATE_KEY, "`n` twice", "n", 400)
    failure = EngineFailure(UpstreamFault.CLIENT, 422, "bad grammar", "validation")
    passed_on = Problem.from_engine_failure(Reason.UNSUPPORTED_FIELD, failure, Verdict(Decision.ADMIT, lane=Lane.BULK))
    assert passed_on.lane is Lane.BULK
    assert (passed_on.http_status, passed_on.error_type, passed_on.message) == (422, "validation", "bad grammar")


@pytest.mark.parametrize("status", [204, 302, 307, 404, 418, 500, 503])
def test_a_status_that_does_not_say_that_the_request_is_wrong_gives_way_to_that_of_the_reason(status: int) -> None:
    failure = EngineFailure(UpstreamFault.CLIENT, status, "bad grammar", "validation")
    problem = Problem.from_engine_failure(Reason.MALFORMED, failure, Verdict(Decision.ADMIT, lane=Lane.BULK))
    assert (problem.http_status, problem.message) == (400, "bad grammar")
