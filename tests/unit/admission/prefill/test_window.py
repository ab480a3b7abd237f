"""The prefill window by hand: 10,000 tokens/s, 8,000 in flight, cap 3,000/s and floor 500/s of bulk."""

from dataclasses import replace

import pytest

from llmshed.admission.policy import ModelLimits, ReplicaBudget, ReplicaSpec
from llmshed.admission.prefill.window import WINDOW_SECONDS, PrefillWindow
from llmshed.admission.request import Lane
from llmshed.admission.verdict import WindowTerms

BULK, INTERACTIVE = Lane.BULK, Lane.INTERACTIVE
BUDGET = ReplicaBudget(
    96_000,
    0.1,
    64,
    prefill_tokens_per_second=10_000.0,
    prefill_inflight_tokens=8_000,
    decode_seconds_per_token=0.01,
)
FULL = round(10_000 * WINDOW_SECONDS)  # tokens that may come at once
UNMETERED = replace(BUDGET, prefill_tokens_per_second=None, prefill_inflight_tokens=None)


def window(budget: ReplicaBudget = BUDGET, *, shared: bool = True, piece: int = 0, share: float = 1.4) -> PrefillWindow:
    spec = ReplicaSpec("a", "p", budget, ModelLimits(64_000, 65_000), overrun_chunk_tokens=piece)
    return PrefillWindow(spec, shared=shared, engine_share_seconds=share, now=0.0)


def take(
    here: PrefillWindow,
    key: int,
    tokens: int,
    now: float = 0.0,
    *,
    lane: Lane = INTERACTIVE,
    streamed: bool = True,
    ceiling: int = 100,
) -> None:
    here.take(key, lane, tokens, now, streamed=streamed, output_ceiling_tokens=ceiling)


def test_a_prompt_longer_than_the_window_goes_and_the_next_waits_until_it_is_paid_off() -> None:
    here = window()
    take(here, 1, FULL + 15_000)
    here.first_token(1, 1.0)
    assert not here.admits(INTERACTIVE, 10, 1.0)
    assert here.ready_at(INTERACTIVE, 10, 1.0) == 1.5
    assert here.wait_seconds(INTERACTIVE, 0, 10, 1.0) == pytest.approx(0.5)
    assert here.wait_seconds(INTERACTIVE, 2_000, 10, 1.0) == pytest.approx(0.7)
    assert here.admits(INTERACTIVE, 10, 1.5)
    assert here.ready_at(INTERACTIVE, 10, 1.5) is None


def test_what_is_in_flight_holds_up_the_next_whatever_the_level() -> None:
    here = window()
    take(here, 1, 1_000)
    assert here.admits(INTERACTIVE, 7_000, 0.0)
    assert not here.admits(INTERACTIVE, 7_001, 0.0)
    assert here.ready_at(INTERACTIVE, 7_001, 0.0) is None
    assert here.wait_seconds(INTERACTIVE, 0, 7_500, 0.0) == pytest.approx(0.05)
    assert here.busy_seconds(0.02) == pytest.approx(0.08)
    here.end(1, 0.3)
    assert here.admits(INTERACTIVE, 60_000, 0.3)


def test_nothing_waits_that_would_be_let_in_with_nothing_ahead() -> None:
    here = window()
    take(here, 1, 1_000)
    assert here.wait_seconds(INTERACTIVE, 0, 7_000, 0.0) == 0
    assert here.wait_seconds(INTERACTIVE, FULL + 13_000, 100, 0.0) == pytest.approx(1.4)


@pytest.mark.parametrize(
    ("inflight", "rate", "share", "bound"),
    [(8_000, 10_000.0, 1.4, 8_000), (8_000, 10_000.0, 0.5, 5_000), (None, 10_000.0, 1.4, 14_000),
     (8_000, None, 0.5, 8_000), (None, None, 0.5, None)],
)  # fmt: skip
def test_the_bound_in_flight_is_the_least_that_is_known(
    inflight: int | None, rate: float | None, share: float, bound: int | None
) -> None:
    budget = replace(BUDGET, prefill_inflight_tokens=inflight, prefill_tokens_per_second=rate)
    assert window(budget, share=share).terms(0.0).inflight_limit_tokens == bound


def test_an_answer_that_is_not_streamed_makes_room_when_its_prefill_is_over_as_predicted() -> None:
    here = window()
    take(here, 1, 5_000, streamed=False)
    assert not here.admits(INTERACTIVE, 4_000, 0.49)
    assert here.ready_at(INTERACTIVE, 4_000, 0.2) == 0.5
    assert here.admits(INTERACTIVE, 4_000, 0.5)
    assert here.most_tokens_per_second == 10_000


def test_an_unread_prompt_gives_everything_back() -> None:
    here = window()
    here.interactive_came(0.0)
    before = here.terms(0.0)
    take(here, 1, 20_000, lane=BULK)
    assert here.bulk_share(0.0) == 1
    here.refund(1, 0.0)
    here.refund(1, 0.0)
    here.end(1, 0.0)
    assert here.terms(0.0) == before
    assert here.bulk_share(0.0) is None


def test_what_time_has_paid_off_is_not_given_back_to_those_who_came_later() -> None:
    """That of the first prompt is paid off at 1.75 s and the window full at 2 s; the second one's is at 4.25 s."""
    here = window()
    take(here, 1, 20_000)
    take(here, 2, 20_000, now=2.5)
    here.refund(1, 2.5)
    here.first_token(2, 3.0)
    assert not here.admits(INTERACTIVE, 10, 4.24)
    assert here.admits(INTERACTIVE, 10, 4.25)


def test_without_numbers_nothing_is_held_back() -> None:
    here = window(UNMETERED)
    take(here, 1, 90_000)
    assert here.admits(INTERACTIVE, 90_000, 0.0)
    assert here.wait_seconds(INTERACTIVE, 90_000, 90_000, 0.0) == 0
    assert here.ready_at(INTERACTIVE, 90_000, 0.0) is None
    assert here.prefill_seconds(500) == 0.5
    assert here.terms(0.0) == WindowTerms(None, 0.0, 90_000, None, None, 0.0)


def test_bulk_keeps_to_its_cap_while_interactive_work_comes() -> None:
    here = window()
    here.interactive_came(0.0)
    here.bulk_waits(0.0, waiting=True)
    take(here, 1, 3_000, lane=BULK)
    here.first_token(1, 0.1)
    assert not here.admits(BULK, 100, 0.1)
    assert here.admits(INTERACTIVE, 100, 0.1)
    assert here.ready_at(BULK, 100, 0.1) == 1.0
    assert here.wait_seconds(BULK, 0, 100, 0.1) == pytest.approx(0.9)
    assert here.wait_seconds(BULK, 3_000, 100, 0.1, bulk_ahead_tokens=3_000) == pytest.approx(1.9)
    assert here.terms(0.1).bulk_level_tokens == pytest.approx(-2_700)
    assert here.admits(BULK, 100, 1.0)


def test_bulk_within_its_floor_goes_beside_its_cap_and_what_is_in_flight() -> None:
    here = window()
    here.interactive_came(0.0)
    here.bulk_waits(0.0, waiting=True)
    take(here, 1, 7_900)
    assert here.within_floor(60_000, 1.0)
    assert not here.admits(INTERACTIVE, 200, 1.0)
    assert here.admits(BULK, 60_000, 1.0)
    take(here, 2, 6_500, 1.0, lane=BULK)
    assert not here.within_floor(10, 1.0)
    assert here.ready_at(BULK, 10, 1.0) == 13.0
    here.interactive_came(10.0)
    assert here.within_floor(10, 13.0)
    assert not here.admits(BULK, 10, 13.0)  # 14,400 are in flight still
    here.first_token(1, 13.0)
    assert here.admits(BULK, 10, 13.0)


def test_a_prompt_that_the_cache_holds_is_within_the_floor_whatever_it_owes() -> None:
    here = window()
    take(here, 1, 5_000, lane=BULK)
    assert here.within_floor(0, 0.0)
    assert not here.within_floor(1, 0.0)


def test_a_pool_of_its_own_has_neither_cap_nor_floor() -> None:
    here = window(shared=False)
    here.interactive_came(0.0)
    here.bulk_waits(0.0, waiting=True)
    take(here, 1, 9_000, lane=BULK)
    here.first_token(1, 0.5)
    assert here.admits(BULK, 9_000, 1.0)
    assert not here.within_floor(10, 1.0)
    assert here.ready_at(BULK, 10, 1.0) is None
    assert here.terms(1.0).bulk_level_tokens is None


def test_re_prefills_are_paid_for_when_they_are_due_and_slow_the_estimate_before() -> None:
    here = window(piece=1_024)
    take(here, 1, 2_000, ceiling=2_048)
    here.first_token(1, 0.0)
    assert here.terms(10.24).level_tokens == pytest.approx(FULL - 3_024)
    here = window(piece=1_024)
    take(here, 1, 20_000, ceiling=2_048)
    here.first_token(1, 0.0)
    slowed = 10_000 - 21_024 / 10.24
    assert here.wait_seconds(INTERACTIVE, 5_000, 10, 0.0) == pytest.approx((25_000 - FULL) / slowed)
    here.end(1, 1.0)
    assert here.wait_seconds(INTERACTIVE, 5_000, 10, 1.0) == pytest.approx((15_000 - FULL) / 10_000)


def test_re_prefills_that_outrun_the_rate_leave_a_tenth_of_it_in_an_estimate() -> None:
    here = window(replace(BUDGET, decode_seconds_per_token=0.0001), piece=1_024)
    take(here, 1, 20_000, ceiling=2_048)
    here.first_token(1, 0.0)
    assert here.wait_seconds(INTERACTIVE, 0, 10, 0.0) == pytest.approx((20_000 - FULL) / 1_000)


def test_an_unstreamed_answer_is_expected_to_prefill_again_too() -> None:
    here = window(piece=1_024)
    take(here, 1, 2_000, streamed=False, ceiling=2_048)
    assert here.terms(10.44).level_tokens == pytest.approx(FULL - 3_024)


def test_first_tokens_behind_each_other_move_the_measured_rate() -> None:
    here = window()
    for key in range(3):
        take(here, key, 2_600)
    for key in range(3):
        here.first_token(key, 0.13 * (key + 1))
    assert here.prefill_seconds(10_500) < 1.0
    assert here.most_tokens_per_second == 10_000, "no more than the profile's is let in"


def test_other_numbers_keep_debts_and_what_is_in_flight() -> None:
    here = window()
    here.interactive_came(0.0)
    take(here, 1, 20_000, lane=BULK)
    derated = replace(BUDGET, prefill_tokens_per_second=5_000.0)
    here.renew(derated, shared=True, engine_share_seconds=1.4, now=0.0)
    assert here.terms(0.0) == WindowTerms(5_000.0, FULL - 20_000.0, 20_000, 7_000, -20_000.0, -20_000.0)
    here.renew(UNMETERED, shared=False, engine_share_seconds=1.4, now=0.0)
    assert here.terms(0.0) == WindowTerms(None, 0.0, 20_000, None, None, 0.0)
    here.renew(BUDGET, shared=True, engine_share_seconds=1.4, now=0.0)
    assert here.terms(0.0) == WindowTerms(10_000.0, FULL, 20_000, 8_000, None, 0.0)
    assert here.check() == []


def test_the_share_of_bulk_is_told_beside_its_bounds() -> None:
    here = window()
    assert here.bulk_share(0.0) is None
    take(here, 1, 3_000)
    take(here, 2, 1_000, lane=BULK)
    assert here.bulk_share(0.0) == 0.25
