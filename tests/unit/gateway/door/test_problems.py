"""Exceptions become refusals in one place."""

import pytest

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError, Dialect
from llmshed.errors import PromptError, TokenizerError
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.contract.refusals import ContractWriter
from llmshed.gateway.counting.pool import BacklogError
from llmshed.gateway.door.problems import RefusedError, problem_of

TOKENIZER_MEANING = "the pool's tokenizer is missing or disagrees with the engine"


@pytest.mark.parametrize(
    ("error", "reason", "told"),
    [
        (BodyError(Reason.DUPLICATE_KEY, "`n` twice", "n"), Reason.DUPLICATE_KEY, "`n` twice"),
        (PromptError("no template"), Reason.MALFORMED, "no template"),
        (TokenizerError("/etc/tok: no such file"), Reason.TOKENIZER_UNAVAILABLE, TOKENIZER_MEANING),
        (RefusedError(Problem(Reason.DRAINING, "bye")), Reason.DRAINING, "bye"),
    ],
)
def test_what_is_foreseen_has_its_reason_and_its_own_sentence(error: Exception, reason: Reason, told: str) -> None:
    problem = problem_of(error)
    assert (problem.reason, problem.message) == (reason, told)


def test_a_full_counting_queue_tells_its_own_estimate_to_the_client() -> None:
    problem = problem_of(BacklogError("small", 8_000, 8_192, 7.2))
    answer = ContractWriter(lambda: 0.0, 0.5, 60.0).refusal(problem, Dialect.NATIVE, "r")
    assert (answer.status, answer.headers["x-llmshed-reason"]) == (429, "counting_backlog")
    assert (answer.headers["retry-after"], answer.headers["retry-after-ms"]) == ("8", "7200")
    assert "x-should-retry" not in answer.headers


def test_what_nobody_foresaw_is_logged_and_told_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    problem = problem_of(RuntimeError("canary"))
    assert problem.reason is Reason.INTERNAL_ERROR
    assert "canary" not in problem.message
    assert [record.message for record in caplog.records] == ["request_crashed"]
