"""Bulk's cap and floor by hand: 10,000 tokens/s, so a cap of 3,000 and a floor of 500."""

import pytest

from llmshed.admission.policy import BulkShare
from llmshed.admission.prefill.bulk import BulkCharge, BulkPart, cap_ratio

SHARE = BulkShare()


def part(share: BulkShare = SHARE, rate: float | None = 10_000.0, *, blocking: bool = False) -> BulkPart:
    return BulkPart(share, rate, blocking=blocking, now=0.0)


def capped(share: BulkShare = SHARE, *, blocking: bool = False) -> BulkPart:
    bulk = part(share, blocking=blocking)
    bulk.interactive_came(0.0)
    return bulk


def test_without_interactive_work_no_cap_binds_and_nothing_is_charged_to_it() -> None:
    bulk = part()
    bulk.take(60_000, 0.0)
    assert bulk.under_cap(0.0)
    assert bulk.cap_level(0.0) is None
    bulk.interactive_came(1.0)
    assert bulk.cap_level(1.0) == 0


def test_the_cap_is_paid_off_at_its_ratio_of_the_rate() -> None:
    bulk = capped()
    bulk.take(6_000, 0.0)
    assert bulk.cap_level(0.0) == -6_000
    assert bulk.cap_opens_at(0.0) == 2.0
    assert not bulk.under_cap(1.9)
    assert bulk.under_cap(2.0)
    assert bulk.cap_seconds(3_000, 0.0) == pytest.approx(3.0)


def test_the_cap_is_lifted_five_seconds_after_the_last_interactive_request() -> None:
    bulk = capped()
    bulk.take(60_000, 0.0)
    bulk.interactive_came(2.0)
    assert bulk.cap_opens_at(6.9) == 7.0
    assert bulk.under_cap(7.0)
    assert bulk.cap_seconds(60_000, 7.0) == 0


def test_the_debt_of_a_lifted_cap_goes_on_being_paid_off() -> None:
    bulk = capped()
    bulk.take(60_000, 0.0)
    bulk.interactive_came(10.0)
    assert bulk.cap_level(10.0) == pytest.approx(-30_000)


def test_a_cap_of_nothing_lets_nothing_in_while_interactive_work_comes() -> None:
    barred = capped(BulkShare(prefill_cap_ratio=0.0, prefill_floor_ratio=0.0))
    assert not barred.under_cap(4.9)
    assert barred.cap_level(1.0) == 0
    assert barred.cap_seconds(0, 1.0) == 4.0
    assert barred.under_cap(5.0)
    assert not barred.within_floor(5.0)
    assert barred.floor_opens_at() is None


def test_the_floor_lets_one_prompt_in_and_rests_until_it_is_paid_off() -> None:
    bulk = part()
    bulk.waits(0.0, waiting=True)
    assert bulk.within_floor(0.0)
    bulk.take(5_000, 0.0)
    assert bulk.floor_opens_at() == 10.0
    assert not bulk.within_floor(9.9)
    assert bulk.within_floor(10.0)


def test_credit_grows_while_bulk_waits_up_to_ten_seconds_of_it() -> None:
    bulk = part()
    bulk.waits(0.0, waiting=True)
    assert [bulk.credit(now) for now in (0.0, 4.0, 60.0)] == [0, 2_000, 5_000]


def test_credit_that_nobody_waits_for_is_lost_and_debt_is_paid_off_all_the_same() -> None:
    bulk = part()
    bulk.waits(0.0, waiting=True)
    bulk.waits(8.0, waiting=False)
    assert bulk.credit(8.0) == 0
    bulk.take(5_000, 8.0)
    assert bulk.credit(13.0) == -2_500
    bulk.waits(30.0, waiting=True)
    assert bulk.credit(30.0) == 0


def test_what_the_cap_lets_in_beyond_the_floor_costs_one_prompt_of_credit_at_most() -> None:
    bulk = part()
    for _ in range(100):
        bulk.take(5_000, 0.0)
    assert bulk.credit(0.0) == -5_000
    bulk.take(8_000, 0.0)
    assert bulk.credit(0.0) == -8_000
    bulk.take(1_000, 0.0)
    assert bulk.credit(0.0) == -8_000


def test_a_refund_gives_back_just_what_was_taken() -> None:
    bulk = capped()
    bulk.take(8_000, 0.0)
    charge = bulk.take(1_000, 0.0)
    assert charge == BulkCharge(1_000, 0)
    bulk.give_back(charge)
    assert (bulk.cap_level(0.0), bulk.credit(0.0)) == (-8_000, -8_000)


def test_an_unknown_rate_has_no_cap_and_a_floor_of_the_assumed_rate() -> None:
    bulk = part(rate=None)
    bulk.interactive_came(0.0)
    bulk.take(100, 0.0)
    assert bulk.under_cap(0.0)
    assert bulk.cap_level(0.0) is None
    assert bulk.cap_seconds(9_000, 0.0) == 0
    assert bulk.floor_opens_at() == pytest.approx(100 / 50)


def test_other_ratios_keep_the_debts() -> None:
    bulk = capped()
    bulk.waits(0.0, waiting=True)
    bulk.take(6_000, 0.0)
    bulk.renew(BulkShare(prefill_cap_ratio=0.6, prefill_floor_ratio=0.1), 5_000.0, 0.0)
    assert bulk.cap_opens_at(0.0) == 2.0
    assert bulk.floor_opens_at() == 12.0
    bulk.renew(BulkShare(prefill_floor_ratio=0.0), 5_000.0, 1.0)
    assert bulk.credit(1.0) == 0
    bulk.renew(SHARE, 10_000.0, 2.0)
    assert bulk.credit(4.0) == 1_000


@pytest.mark.parametrize(
    ("cap", "floor", "blocking", "in_force"),
    [
        (None, 0.05, False, 0.3),
        (None, 0.02, True, 0.05),
        (None, 0.1, True, 0.1),
        (0.3, 0.02, True, 0.3),
        (0.01, 0.0, True, 0.01),
    ],
)
def test_the_cap_in_force_is_a_few_percent_where_a_prompt_holds_up_every_start_but_never_below_the_floor(
    cap: float | None,
    floor: float,
    blocking: bool,  # noqa: FBT001 - a column of the table
    in_force: float,
) -> None:
    share = BulkShare(prefill_cap_ratio=cap, prefill_floor_ratio=floor)
    assert cap_ratio(share, blocking=blocking) == in_force
