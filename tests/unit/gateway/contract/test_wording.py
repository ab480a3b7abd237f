"""The message text: all that several clients show."""

import pytest

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane
from llmshed.admission.retry_after import RetryAdvice
from llmshed.admission.verdict import AcceptedMaximums
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.contract.wording import message_text

NEVER = RetryAdvice(None, should_not=True)
LONG = AcceptedMaximums(max_input_tokens=4096, max_output_tokens=None, max_total_tokens=8192)

LITELLM_PHRASES = ("Input tokens exceed the configured limit", "`inputs` tokens + `max_new_tokens` must be <=")
LANGCHAIN_PHRASE = "exceeds the context window"


def text(problem: Problem, advice: RetryAdvice = NEVER) -> str:
    return message_text(problem, problem.lane or "none", "req_1", advice)


@pytest.mark.parametrize("reason", Reason)
def test_every_message_is_one_line_with_the_sentence_and_the_tail(reason: Reason) -> None:
    message = text(Problem(reason, "Two\nlines. "))
    assert message.endswith(f"[llmshed reason={reason} lane=none request_id=req_1]")
    assert "Two lines" in message
    assert message.isprintable()
    assert ".." not in message


@pytest.mark.parametrize(
    ("given", "asked", "phrase"),
    [
        (19_000, None, "Input tokens exceed the configured limit: 19000 > max_input_tokens=4096"),
        (
            4000,
            5000,
            "`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 4000 `inputs` tokens and 5000 `max_new_tokens`",
        ),
        (None, None, "Input tokens exceed the configured limit"),
    ],
)
def test_context_overflow_is_told_in_the_words_that_client_libraries_know(
    given: int | None, asked: int | None, phrase: str
) -> None:
    problem = Problem(
        Reason.CONTEXT_LIMIT, "too long", maximums=LONG, longest_prompt_tokens=given, requested_output_tokens=asked
    )
    message = text(problem)
    assert f"{phrase}; the request {LANGCHAIN_PHRASE} of this endpoint" in message
    assert "max_input_tokens=4096 max_total_tokens=8192" in message


def test_a_prompt_beyond_its_lane_is_an_overflow_to_client_libraries_too() -> None:
    message = text(Problem(Reason.LANE_LIMIT, "too long", maximums=LONG, input_tokens=19_000))
    assert LITELLM_PHRASES[0] in message
    assert LANGCHAIN_PHRASE in message


@pytest.mark.parametrize(
    "problem",
    [
        Problem(Reason.LANE_LIMIT, "64 copies", maximums=LONG, input_tokens=6400, longest_prompt_tokens=100),
        Problem(Reason.LANE_LIMIT, "no pool here takes bulk work"),
        Problem(Reason.OUTPUT_LIMIT, "5,000 output tokens", maximums=LONG, input_tokens=5000),
        Problem(Reason.TOKEN_BUDGET_EXHAUSTED, "busy", maximums=LONG, input_tokens=5000),
    ],
)
def test_nothing_else_claims_that_the_prompt_is_too_long(problem: Problem) -> None:
    message = text(problem)
    assert not any(phrase in message for phrase in (*LITELLM_PHRASES, LANGCHAIN_PHRASE))


def test_a_wait_is_told_in_the_seconds_of_retry_after() -> None:
    message = text(
        Problem(Reason.CONCURRENCY_LIMIT, "all seats taken", lane=Lane.BULK), RetryAdvice(2417, should_not=False)
    )
    assert message.startswith("Model is overloaded: all seats taken; retry in 3 s. [llmshed")


def test_a_spent_quota_does_not_blame_the_model() -> None:
    assert text(Problem(Reason.TENANT_QUOTA, "8 of 8 requests run")).startswith("8 of 8 requests run")


@pytest.mark.parametrize(
    ("whole", "beginning", "told"),
    [
        (1.5, None, " Asked for: the whole answer within 1.5 s. ["),
        (None, 100.9 - 100, " Asked for: its beginning within 0.9 s. ["),
        (60.0, 2.0, " Asked for: the whole answer within 60 s and its beginning within 2 s. ["),
        (None, None, ": too late; retry in 2 s. ["),
    ],
)
def test_a_deadline_is_told_with_its_refusal(whole: float | None, beginning: float | None, told: str) -> None:
    problem = Problem(Reason.DEADLINE_INFEASIBLE, "too late", deadline_seconds=whole, first_token_seconds=beginning)
    assert told in text(problem, RetryAdvice(2000, should_not=True))
