"""Heads of answers, and what makes a client come back."""

import pytest

from llmshed.loadtest.replies import LOST_STATUS, NOTHING_TOLD, Reply, Told, read_head
from llmshed.workload.asks import Ask, Outcome, Sample
from llmshed.workload.clients import Refusal


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({}, NOTHING_TOLD),
        ({"x-llmshed-lane": "none"}, NOTHING_TOLD),
        ({"x-llmshed-lane": "bulk", "x-llmshed-reason": "queue_full"}, Told(lane="bulk", reason="queue_full")),
        ({"retry-after": "3"}, Told(retry_after_seconds=3.0)),
        ({"retry-after": "3", "retry-after-ms": "2417"}, Told(retry_after_seconds=2.417)),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, NOTHING_TOLD),
        ({"retry-after": "-1"}, NOTHING_TOLD),
        ({"retry-after": "inf"}, NOTHING_TOLD),
        ({"retry-after": "nan"}, NOTHING_TOLD),
        ({"x-should-retry": "false"}, Told(should_retry=False)),
        ({"x-should-retry": "true"}, Told(should_retry=True)),
        ({"x-should-retry": "maybe"}, NOTHING_TOLD),
        ({"x-llmshed-input-tokens": "512"}, Told(input_tokens=512)),
        ({"x-llmshed-input-tokens": "many"}, NOTHING_TOLD),
    ],
)
def test_what_cannot_be_read_is_not_said(headers: dict[str, str], told: Told) -> None:
    assert read_head(headers) == told


def reply(outcome: Outcome, status: int | None, *, times: tuple[float, ...] = (), told: Told = NOTHING_TOLD) -> Reply:
    ask = Ask("a", 10, 10, runs_to_ceiling=False, lane="interactive")
    return Reply(Sample(ask, 0.0, 0.0, times, 1.0, outcome, status, len(times)), told, 0, "")


@pytest.mark.parametrize(
    ("one", "refusal"),
    [
        (reply(Outcome.FINISHED, 200, times=(0.5,)), None),
        (reply(Outcome.CANCELLED, None), None),
        (
            reply(Outcome.REFUSED, 429, told=Told(retry_after_seconds=2.0, should_retry=False)),
            Refusal(429, 2.0, should_retry=False),
        ),
        (reply(Outcome.FAILED, None), Refusal(LOST_STATUS)),
        (reply(Outcome.REFUSED, 200), Refusal(LOST_STATUS)),  # in an event, before any token
        (reply(Outcome.FAILED, 200, times=(0.5,)), None),
    ],
)
def test_clients_come_back_only_before_an_answer_has_begun(one: Reply, refusal: Refusal | None) -> None:
    assert one.refusal() == refusal


def test_the_gateways_lane_is_the_lane() -> None:
    assert reply(Outcome.FINISHED, 200).lane == "interactive"
    assert reply(Outcome.FINISHED, 200, told=Told(lane="bulk")).lane == "bulk"
