"""The oracle's decisions, one by one. One step is 10 ms, 0.1 ms a prompt token and 0.2 ms a decoding sequence."""

from dataclasses import replace

import pytest

from fakes.knocks import Knocker
from fakes.stages import GPU, stage
from llmshed.admission.actions import Dispatch, Enqueue, Evict, Refuse
from llmshed.admission.events import Finished, FirstToken
from llmshed.admission.reasons import Reason
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.sequences import Sequence
from llmshed.whatif.gates.levels import OracleLevel
from llmshed.whatif.gates.table import build_gate, oracle_gate


def oracle(tokens: int, copies: int = 1, reserve: float = 0.0) -> Knocker:
    return Knocker(lambda s: oracle_gate(s, OracleLevel(tokens, reserve)), stage(copies))


def test_true_tokens_bind_and_not_ceilings() -> None:
    knocker = oracle(1000)
    assert isinstance(knocker.knock(300, 900, true_output=100)[0], Dispatch)
    assert isinstance(knocker.knock(500, 4000, true_output=100)[0], Dispatch)
    assert isinstance(knocker.knock(1, 1)[0], Enqueue)


def test_a_true_length_beyond_the_ceiling_counts_up_to_it() -> None:
    knocker = oracle(1000)
    knocker.knock(300, 200, true_output=5000)
    assert isinstance(knocker.knock(400, 100)[0], Dispatch)


def test_order_is_kept_though_a_smaller_one_would_fit() -> None:
    knocker = oracle(1000)
    knocker.knock(700, 100)
    assert isinstance(knocker.knock(300, 100)[0], Enqueue)
    assert isinstance(knocker.knock(10, 10)[0], Enqueue)
    knocker.tell(FirstToken(1), 0.1)
    assert [action.key for action in knocker.tell(Finished(1), 0.2) if isinstance(action, Dispatch)] == [2, 3]


def test_one_request_above_the_level_goes_to_an_empty_replica() -> None:
    assert isinstance(oracle(10).knock(5000, 100)[0], Dispatch)


def test_work_goes_where_its_first_token_comes_soonest() -> None:
    knocker = oracle(50_000, 2)
    sent = [action for size in (4000, 300, 300) for action in knocker.knock(size, 10) if isinstance(action, Dispatch)]
    assert [one.replica for one in sent] == ["main-1", "main-2", "main-2"]


def test_it_is_refused_when_its_first_token_can_no_longer_come_in_time() -> None:
    knocker = oracle(600)
    knocker.knock(500, 100)
    knocker.knock(500, 100)
    ((at, evicted),) = knocker.tick_until(10.0)
    assert isinstance(evicted, Evict)
    assert evicted.verdict.reason is Reason.DEADLINE_INFEASIBLE
    assert 1.0 - 0.06 - 1e-3 < at < 1.0 - 0.06 + 1e-3, "a second less the 60 ms that it takes alone"


def test_with_a_reserve_the_first_gives_way_only_to_those_behind_it() -> None:
    alone, followed = oracle(600, reserve=0.5), oracle(600, reserve=0.5)
    for knocker in (alone, followed):
        knocker.knock(500, 100)
        knocker.knock(500, 100, now=0.1)
    followed.knock(500, 100, now=0.7)
    for knocker, expected in ((alone, 2), (followed, 3)):
        knocker.tell(FirstToken(1), 0.75)
        sent = [action.key for action in knocker.tell(Finished(1), 0.8) if isinstance(action, Dispatch)]
        assert sent == [expected]


def test_permits_of_the_engine_bind() -> None:
    setting = stage(parameters=replace(GPU, max_concurrent_requests=2))
    knocker = Knocker(lambda s: build_gate("oracle", s), setting)
    assert [type(knocker.knock(10, 5)[0]) for _ in range(3)] == [Dispatch, Dispatch, Enqueue]


def test_a_request_goes_where_its_prefix_is_cached_unless_another_replica_is_sooner() -> None:
    setting = stage(2, parameters=replace(GPU, prefix_caching=True))
    prompt = PromptBlocks(tuple(range(40)), 100)
    model = setting.models["main-2"]
    assert model.take_permit(1001)
    model.submit(Sequence(1001, 4000, 1, blocks=prompt), 0.0)
    model.advance(10.0)
    knocker = Knocker(lambda s: oracle_gate(s, OracleLevel(50_000)), setting)
    sent = [
        action
        for _ in range(2)
        for action in knocker.knock(4000, 10, now=10.0, blocks=prompt)
        if isinstance(action, Dispatch)
    ]
    assert [one.replica for one in sent] == ["main-2", "main-2"]
    (other,) = [action for action in knocker.knock(4000, 10, now=10.0) if isinstance(action, Dispatch)]
    assert other.replica == "main-1"


def test_one_whose_prefix_may_be_cached_waits_for_longer() -> None:
    waits = []
    for blocks in (None, PromptBlocks(tuple(range(39)), 100)):
        knocker = Knocker(
            lambda s: oracle_gate(s, OracleLevel(1000, 0.0)), stage(parameters=replace(GPU, prefix_caching=True))
        )
        knocker.knock(500, 100)
        knocker.knock(4000, 100, blocks=blocks)
        waits.append(knocker.gate.next_wakeup())
    objective = 5 * (4000 / 10_000 + 0.01)
    assert waits == [pytest.approx(objective - 0.41), pytest.approx(objective - 0.02)]


def test_a_request_that_comes_again_has_no_more_time_than_when_it_first_came() -> None:
    knocker = oracle(50_000)
    assert isinstance(knocker.knock(1000, 10, now=3.0, first_at=2.5)[0], Dispatch)
    (refused,) = knocker.knock(1000, 10, now=3.0, first_at=1.9)
    assert isinstance(refused, Refuse)
    assert refused.verdict.reason is Reason.DEADLINE_INFEASIBLE


def test_an_answer_of_several_chunks_is_known_to_compute_its_prompt_again() -> None:
    knocker = oracle(50_000)
    knocker.knock(1000, 4096, true_output=2500)
    (passenger,) = knocker.gate._rule._stations["main-1"]._ahead.values()  # type: ignore[attr-defined]  # what it knows
    assert [(one.after_tokens, one.work.tokens) for one in passenger.repeats] == [(1024, 2024), (2048, 3048)]


def test_who_brings_too_few_tokens_for_its_time_gives_way_only_to_those_behind_it() -> None:
    slow_pairs = replace(GPU, step_times=replace(GPU.step_times, seconds_per_attention_pair=5e-8))
    alone, followed = (
        Knocker(lambda s: oracle_gate(s, OracleLevel(8000, 0.0, 0.7)), stage(parameters=slow_pairs)) for _ in range(2)
    )
    for knocker in (alone, followed):
        knocker.knock(500, 10)
        knocker.knock(7500, 10)  # 2.15 s for what short prompts do in 0.75 s
    (evicted,) = [action for action in followed.knock(500, 10) if isinstance(action, Evict)]
    assert (evicted.key, evicted.verdict.reason) == (2, Reason.TOKEN_BUDGET_EXHAUSTED)
    alone.tell(FirstToken(1), 0.1)
    assert [one.key for one in alone.tell(Finished(1), 0.2) if isinstance(one, Dispatch)] == [2]
