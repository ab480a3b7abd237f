"""What clients are told, and when they come back."""

import random

import pytest

from fakes.stages import EDGES, stage, traced
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, Lane
from llmshed.admission.verdict import Decision, Verdict
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.whatif.clients_at_work import ClientsAtWork, manner_of
from llmshed.whatif.door import Door
from llmshed.whatif.replicas import EngineRefusal
from llmshed.whatif.visits import Visit
from llmshed.workload.clients import RUDE_PAUSE_SECONDS, RUDE_RETRIES, SDK_RETRIES, ClientModel, Refusal

SETTING = stage(retry_jitter_ratio=0.0)


def clients(model: ClientModel, jitter_ratio: float = 0.0) -> ClientsAtWork:
    return ClientsAtWork(model, stage(retry_jitter_ratio=jitter_ratio), random.Random(1))  # noqa: S311 - one seed


def visit(tries: int = 1, *, streamed: bool = True) -> Visit:
    come = Door(SETTING, EDGES).visit(traced(0.0, streamed=streamed), 0.0)
    come.tries = tries
    return come


def wait(model: ClientModel, reason: Reason, told: float | None, tries: int = 1, jitter: float = 0.0) -> float | None:
    verdict = Verdict(Decision.REFUSE, reason, retry_after_seconds=told)
    return clients(model, jitter).after_verdict(visit(tries), reason, verdict)


def test_an_sdk_comes_back_when_it_was_told_to() -> None:
    assert wait(ClientModel.SDK, Reason.TOKEN_BUDGET_EXHAUSTED, 7.25) == 7.25
    assert wait(ClientModel.SDK, Reason.NO_REPLICA, None) == 5.0


def test_jitter_is_drawn_upward_only() -> None:
    waits = [wait(ClientModel.SDK, Reason.TOKEN_BUDGET_EXHAUSTED, 10.0, jitter=1.0) for _ in range(3)]
    assert all(one is not None and 10.0 < one <= 20.0 for one in waits)
    assert len(set(waits)) == 1, "one seed, one draw"


def test_nobody_is_told_less_than_a_second() -> None:
    assert wait(ClientModel.SDK, Reason.TOKEN_BUDGET_EXHAUSTED, 0.01) == 1.0


@pytest.mark.parametrize(
    ("reason", "told"),
    [(Reason.CONTEXT_LIMIT, None), (Reason.DEADLINE_INFEASIBLE, 2.0), (Reason.TOKEN_BUDGET_EXHAUSTED, 61.0)],
)
def test_an_sdk_that_is_told_not_to_retry_does_not(reason: Reason, told: float | None) -> None:
    assert wait(ClientModel.SDK, reason, told) is None


def test_tries_are_counted_against_patience() -> None:
    busy = Reason.TOKEN_BUDGET_EXHAUSTED
    assert wait(ClientModel.SDK, busy, 2.0, tries=SDK_RETRIES) is not None
    assert wait(ClientModel.SDK, busy, 2.0, tries=SDK_RETRIES + 1) is None
    assert wait(ClientModel.RUDE, Reason.CONTEXT_LIMIT, None, tries=RUDE_RETRIES) == RUDE_PAUSE_SECONDS
    assert wait(ClientModel.RUDE, busy, None, tries=RUDE_RETRIES + 1) is None
    assert wait(ClientModel.NONE, busy, 2.0) is None


def test_an_engine_that_is_full_says_so_in_the_status_unless_the_answer_is_a_stream() -> None:
    sdk = clients(ClientModel.SDK)
    whole, stream = visit(streamed=False), visit()
    # openai-python backs off by 0.5 s less up to a quarter where no header tells a time.
    back_off = sdk.after_engine_refusal(whole, EngineRefusal.OVERLOADED)
    assert back_off is not None
    assert 0.375 <= back_off <= 0.5
    assert sdk.after_engine_refusal(stream, EngineRefusal.OVERLOADED) is None
    assert clients(ClientModel.RUDE).after_engine_refusal(stream, EngineRefusal.OVERLOADED) == RUDE_PAUSE_SECONDS


def test_a_full_vllm_says_so_to_streams_too_and_an_sdk_comes_back() -> None:
    vllm = ClientsAtWork(ClientModel.SDK, stage(parameters=VllmParameters()), random.Random(1))  # noqa: S311 - one seed
    for streamed in (True, False):
        back_off = vllm.after_engine_refusal(visit(streamed=streamed), EngineRefusal.OVERLOADED)
        assert back_off is not None
        assert 0.375 <= back_off <= 0.5
        assert vllm.after_engine_refusal(visit(streamed=streamed), EngineRefusal.INVALID) is None


def test_a_request_that_the_engine_finds_invalid_is_not_sent_again() -> None:
    assert clients(ClientModel.SDK).after_engine_refusal(visit(streamed=False), EngineRefusal.INVALID) is None


def test_an_answer_that_was_lost_may_not_be_asked_for_again_blindly() -> None:
    assert clients(ClientModel.SDK).after_failure(visit()) is None
    assert clients(ClientModel.POLITE).after_failure(visit()) is None
    assert clients(ClientModel.RUDE).after_failure(visit()) == RUDE_PAUSE_SECONDS


def test_clients_of_two_kinds_each_do_as_their_own() -> None:
    def manner(come: Visit, refusal: Refusal, rng: random.Random) -> float | None:
        model = ClientModel.NONE if come.standing.lane is Lane.BULK else ClientModel.SDK
        return manner_of(model)(come, refusal, rng)

    both = ClientsAtWork(manner, SETTING, random.Random(1))  # noqa: S311 - one seed
    busy = Verdict(Decision.REFUSE, Reason.TOKEN_BUDGET_EXHAUSTED, retry_after_seconds=7.25)
    bulk = Door(SETTING, EDGES).visit(traced(0.0, intent=Intent.BULK), 0.0)
    assert both.after_verdict(visit(), Reason.TOKEN_BUDGET_EXHAUSTED, busy) == 7.25
    assert both.after_verdict(bulk, Reason.TOKEN_BUDGET_EXHAUSTED, busy) is None
