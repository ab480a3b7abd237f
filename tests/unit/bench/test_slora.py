"""S-LoRA's rules on step times that can be added up by hand."""

import pytest
from replaying import Sent
from slora import SloraPool, replay_slora

from llmshed.simulation.cost import StepTimes

SECOND = StepTimes(step_seconds=1.0, seconds_per_prefill_token=0.0, seconds_per_decoding_sequence=0.0)
POOL = SloraPool(kv_tokens=1000, prefill_tokens=100)


def times(pool: SloraPool, *requests: Sent) -> list[tuple[float, float]]:
    outcomes = replay_slora(SECOND, pool, requests)
    return [(outcome.first_at, outcome.ended_at) for outcome in sorted(outcomes, key=lambda one: one.sent.at)]


def test_one_request_takes_a_step_for_each_token() -> None:
    assert times(POOL, Sent(5.0, 10, 3)) == [(6.0, 8.0)]


def test_a_late_one_joins_after_ten_decode_steps_and_pauses_the_others() -> None:
    # Prefill to 1, decodes to 11, prefill of the other to 12, decodes to 13 and 17.
    assert times(POOL, Sent(0.0, 10, 16), Sent(0.5, 10, 2)) == [(1.0, 17.0), (12.0, 13.0)]


def test_once_ten_steps_are_over_one_that_comes_joins_at_the_next() -> None:
    assert times(POOL, Sent(0.0, 10, 40), Sent(15.5, 10, 1))[1] == (17.0, 17.0)


@pytest.mark.parametrize(
    ("kv_tokens", "together"),
    # Held 11 and 11, left 4 and 4: at most 4 x 2 + 22 = 30 tokens, which must stay below the pool.
    [(31, True), (30, False)],
)
def test_two_start_together_only_if_all_that_they_will_hold_stays_below_the_pool(
    kv_tokens: int, *, together: bool
) -> None:
    pool = SloraPool(kv_tokens, prefill_tokens=100)
    (first, _), (second, _) = times(pool, Sent(0.0, 10, 5), Sent(0.0, 10, 5))
    assert (first == second) is together


def test_no_more_prompt_tokens_join_at_once_than_a_prefill_takes() -> None:
    (first, _), (second, _) = times(POOL, Sent(0.0, 60, 1), Sent(0.0, 60, 1))
    assert (first, second) == (1.0, 2.0)
