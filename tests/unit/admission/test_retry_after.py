"""The wait that a refused client is told."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.admission.reasons import Reason
from llmshed.admission.retry_after import RetryRule

BUSY = Reason.TOKEN_BUDGET_EXHAUSTED


@given(
    estimate=st.floats(min_value=0.001, max_value=3600),
    draw=st.floats(min_value=0, max_value=1),
    jitter_ratio=st.floats(min_value=0, max_value=4),
)
def test_nobody_is_told_less_than_the_estimate_and_both_headers_agree(
    estimate: float, draw: float, jitter_ratio: float
) -> None:
    advice = RetryRule(lambda: draw, jitter_ratio, 60.0).advise(BUSY, 429, estimate)
    assert advice.wait_ms is not None
    assert advice.wait_ms >= 1000 * max(estimate, 1.0) - 1e-6
    assert advice.wait_seconds == math.ceil(advice.wait_ms / 1000) >= 1
    assert advice.should_not == (estimate > 60.0)
    if estimate <= 60.0:
        assert advice.wait_seconds <= 60, "what clients can wait for must not be jittered beyond it"
    assert advice.wait_ms <= math.ceil(1000 * max(estimate, 1.0) * (1 + jitter_ratio))


def test_the_draw_spreads_the_callers_over_the_whole_jitter_width() -> None:
    waits = [RetryRule(lambda d=i / 10: d, 1.0, 60.0).advise(BUSY, 429, 2.0).wait_ms for i in range(11)]  # type: ignore[misc]  # default binds i
    assert waits == [2000, 2200, 2400, 2600, 2800, 3000, 3200, 3400, 3600, 3800, 4000]


def test_a_wait_of_over_a_minute_is_told_truly_but_not_invited() -> None:
    advice = RetryRule(lambda: 0.0, 1.0, 60.0).advise(BUSY, 429, 180.0)
    assert (advice.wait_seconds, advice.should_not) == (180, True)


@pytest.mark.parametrize("estimate", [None, math.nan])
def test_without_an_estimate_a_client_is_told_when_to_ask_again(estimate: float | None) -> None:
    rule = RetryRule(lambda: 0.0, 1.0, 60.0)
    assert rule.advise(BUSY, 429, estimate).wait_seconds == 1
    assert rule.advise(Reason.NO_REPLICA, 503, estimate).wait_seconds == 5


@pytest.mark.parametrize("estimate", [math.inf, 1e300, -5.0, -math.inf, 0.0])
def test_a_senseless_estimate_becomes_a_header_that_clients_can_read(estimate: float) -> None:
    advice = RetryRule(lambda: 1.0, 1.0, 60.0).advise(BUSY, 429, estimate)
    assert advice.wait_seconds in {2, 172_800}


def test_the_requests_own_deadline_is_not_worth_a_retry_however_short_the_wait() -> None:
    advice = RetryRule(lambda: 0.0, 1.0, 60.0).advise(Reason.DEADLINE_INFEASIBLE, 429, 2.0)
    assert (advice.wait_seconds, advice.should_not) == (2, True)
