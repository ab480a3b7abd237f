"""The token bucket, against levels worked out by hand: 1,000 tokens a second and 2 seconds of burst."""

import math
from itertools import pairwise

import pytest

from fakes.knocks import Knocker
from fakes.stages import GPU, stage
from llmshed.admission.actions import Dispatch, Refuse
from llmshed.admission.events import Finished, ReplicaDown
from llmshed.admission.reasons import Reason
from llmshed.whatif.gates.books import Books
from llmshed.whatif.gates.bucket import TokenBucket
from llmshed.whatif.gates.table import build_gate, token_bucket_gate


def bucket(copies: int = 1) -> Knocker:
    return Knocker(lambda s: token_bucket_gate(s, 1000.0), stage(copies))


def test_a_burst_passes_and_what_exceeds_it_is_told_when_the_bucket_has_filled() -> None:
    knocker = bucket()
    assert isinstance(knocker.knock(1500, 900)[0], Dispatch)
    (answer,) = knocker.knock(1000, 1)
    assert isinstance(answer, Refuse)
    assert answer.verdict.reason is Reason.TOKEN_BUDGET_EXHAUSTED
    assert answer.verdict.retry_after_seconds == pytest.approx(0.5), "500 of 1,000 tokens are there"
    assert isinstance(knocker.knock(1000, 1, now=0.499)[0], Refuse)
    assert isinstance(knocker.knock(1000, 1, now=0.5)[0], Dispatch)


def test_answers_and_their_ends_cost_nothing() -> None:
    knocker = bucket()
    knocker.knock(2000, 1)
    knocker.tell(Finished(1, 1), 0.1)
    assert isinstance(knocker.knock(150, 1, now=0.1)[0], Refuse)


def test_a_prompt_larger_than_the_bucket_passes_a_full_one_and_leaves_a_debt() -> None:
    knocker = bucket()
    assert isinstance(knocker.knock(5000, 1)[0], Dispatch)
    (answer,) = knocker.knock(100, 1)
    assert isinstance(answer, Refuse)
    assert answer.verdict.retry_after_seconds == pytest.approx(3.1), "3,000 of debt and its own 100"
    assert isinstance(knocker.knock(5000, 1, now=4.0)[0], Refuse)
    assert isinstance(knocker.knock(5000, 1, now=5.0)[0], Dispatch)


def test_an_idle_bucket_holds_no_more_than_its_burst() -> None:
    knocker = bucket()
    assert isinstance(knocker.knock(2000, 1, now=1000.0)[0], Dispatch)
    assert isinstance(knocker.knock(1, 1, now=1000.0)[0], Refuse)


def test_the_rate_is_that_of_the_replicas_that_are_up() -> None:
    knocker = bucket(2)
    assert isinstance(knocker.knock(4000, 1)[0], Dispatch)
    knocker.tell(ReplicaDown("main-2"), 1.0)  # two thousand came in while both were up
    assert isinstance(knocker.knock(2000, 1, now=1.0)[0], Dispatch)
    assert isinstance(knocker.knock(1000, 1, now=1.9)[0], Refuse)
    assert isinstance(knocker.knock(1000, 1, now=2.0)[0], Dispatch)


def test_over_any_stretch_no_more_passes_than_rate_and_burst_allow() -> None:
    knocker, passed = bucket(), [(0.0, 0)]
    for number in range(2000):
        now = number * 0.01
        size = 50 + number * 7919 % 400
        if isinstance(knocker.knock(size, 1, now=now)[0], Dispatch):
            passed.append((now, passed[-1][1] + size))
    for begin in range(0, len(passed), 17):
        for at, total in passed[begin:]:
            assert total - passed[begin][1] <= 2000 + 1000 * (at - passed[begin][0]) + 1e-3
    assert all(later[0] - before[0] < 0.5 for before, later in pairwise(passed)), "and it never stops"


def test_the_rate_comes_from_the_profile_or_else_from_an_idle_replica() -> None:
    measured = Knocker(lambda s: build_gate("token_bucket", s))
    measured.come_up("main-1", 0.0, prefill_tokens_per_second=100.0)
    measured.knock(200, 1)
    (answer,) = measured.knock(100, 1)
    assert isinstance(answer, Refuse)
    assert answer.verdict.retry_after_seconds == pytest.approx(1.0)
    unmeasured = Knocker(lambda s: build_gate("token_bucket", s))
    steps = math.ceil(8000 / GPU.max_batch_prefill_tokens)
    rate = 8000 / (8000 / 10_000 + steps * 0.01)
    unmeasured.knock(8000, 1)
    unmeasured.knock(8000, 1)
    (answer,) = unmeasured.knock(8000, 1)
    assert isinstance(answer, Refuse)
    assert answer.verdict.retry_after_seconds == pytest.approx((16_000 - 2 * rate + 8000) / rate, rel=0.01)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan])
def test_a_rate_that_lets_nothing_through_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="lets nothing through; accepted are above 0"):
        token_bucket_gate(stage(), rate)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan])
def test_a_burst_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="is none; accepted is more than 0"):
        TokenBucket(Books(), lambda _replica: 1.0, seconds)
