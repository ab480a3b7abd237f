"""Thresholds on polled metrics: the extension's own numbers, 5 queued and 80 % of KV, read every 50 ms."""

import math
from dataclasses import replace
from typing import Any

import pytest

from fakes.knocks import Knocker
from fakes.plain_replica import PlainReplica
from fakes.stages import GPU, stage
from llmshed.admission.actions import Dispatch, Enqueue, Evict, Refuse
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, PriorityClass
from llmshed.whatif.gates.table import build_gate, thresholds_gate
from llmshed.whatif.gates.thresholds import Thresholds


class Engine(PlainReplica):
    """An engine whose metrics are what a test says."""

    queue_size = 0
    held_kv_tokens = 0


def fleet(copies: int = 1) -> tuple[Knocker, list[Engine]]:
    plain = stage(copies)
    engines = {name: Engine() for name in plain.models}
    setting = replace(plain, models=engines)
    return Knocker(lambda s: build_gate("thresholds", s), setting), list(engines.values())


def test_nothing_is_held_below_both_thresholds() -> None:
    knocker, (engine,) = fleet()
    engine.queue_size, engine.held_kv_tokens = 4, int(0.79 * GPU.kv_tokens)
    assert isinstance(knocker.knock()[0], Dispatch)


@pytest.mark.parametrize(("queued", "kv_ratio"), [(5, 0.0), (0, 0.8)])
def test_at_either_threshold_work_is_held_and_sheddable_work_refused(queued: int, kv_ratio: float) -> None:
    knocker, (engine,) = fleet()
    engine.queue_size, engine.held_kv_tokens = queued, math.ceil(kv_ratio * GPU.kv_tokens)
    assert isinstance(knocker.knock(now=1.0)[0], Enqueue)
    for sheddable in ({"asked_intent": Intent.BULK}, {"asked_class": PriorityClass.LOW}):
        (answer,) = knocker.knock(now=1.0, **sheddable)
        assert isinstance(answer, Refuse)
        expected = Reason.CONCURRENCY_LIMIT if queued else Reason.TOKEN_BUDGET_EXHAUSTED
        assert answer.verdict.reason is expected


def test_saturation_is_the_mean_over_the_engines() -> None:
    knocker, (first, second) = fleet(2)
    first.queue_size, second.queue_size = 9, 0
    (sent,) = knocker.knock(now=1.0)
    assert isinstance(sent, Dispatch)
    assert sent.replica == "main-2", "and work goes where the queue is shortest"
    first.queue_size = 10
    assert isinstance(knocker.knock(now=2.0)[0], Enqueue)


def test_metrics_are_as_old_as_the_last_look() -> None:
    knocker, (engine,) = fleet()
    knocker.knock(now=0.0)
    engine.queue_size = 50
    assert isinstance(knocker.knock(now=0.049)[0], Dispatch), "the queue is not seen yet: the herd goes in"
    assert isinstance(knocker.knock(now=0.05)[0], Enqueue)
    engine.queue_size = 0
    sent = knocker.tick_until(0.2)
    assert [(round(at, 6), action.key) for at, action in sent if isinstance(action, Dispatch)] == [(0.1, 3)]


def test_held_work_goes_by_class_and_in_order() -> None:
    knocker, (engine,) = fleet()
    knocker.knock(now=0.0)
    engine.queue_size = 5
    for asked in (None, None, PriorityClass.LOW):
        knocker.knock(now=0.06, asked_class=asked)
    engine.queue_size = 0
    assert [action.key for _, action in knocker.tick_until(0.2) if isinstance(action, Dispatch)] == [2, 3]


def test_what_is_held_for_a_minute_is_evicted() -> None:
    knocker, (engine,) = fleet()
    engine.queue_size = 5
    knocker.knock(now=3.0)
    ((at, evicted),) = knocker.tick_until(100.0)
    assert isinstance(evicted, Evict)
    assert (at, evicted.verdict.reason) == (63.0, Reason.DEADLINE_INFEASIBLE)
    assert knocker.gate.next_wakeup() is None, "nobody polls engines on which nothing depends"


def test_a_full_line_turns_the_last_of_its_order_away() -> None:
    plain = stage()
    setting = replace(plain, models={"main-1": (engine := Engine())})
    knocker = Knocker(lambda s: thresholds_gate(s, Thresholds(most_waiting=1)), setting)
    engine.queue_size = 5
    assert isinstance(knocker.knock(now=1.0)[0], Enqueue)
    (refused,) = knocker.knock(now=1.0)
    assert isinstance(refused, Refuse)
    assert refused.verdict.detail == "1 requests are held already"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"queue_requests": 0}, "queue_requests is 0"),
        ({"kv_ratio": math.nan}, "kv_ratio is nan"),
        ({"refresh_seconds": 0.3}, "metrics would be stale between two looks"),
        ({"most_waiting": 0}, "most_waiting is 0"),
    ],
)
def test_thresholds_that_hold_everything_are_refused(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Thresholds(**changed)
