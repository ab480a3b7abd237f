"""Whether a request may go to a replica now, term by term."""

import pytest

from fakes.door import spec
from fakes.pools import charge, pool_of, queued, running
from llmshed.admission.budget import Reservation
from llmshed.admission.request import Lane
from llmshed.admission.service.fitting import Candidate, fits, has_room, passes_window


def candidate(
    input_tokens: int, output: int, lane: Lane = Lane.INTERACTIVE, key: int = 99, *, floor_only: bool = False
) -> Candidate:
    return Candidate(key, lane, Reservation(input_tokens, output, 0, 1), floor_only)


def test_the_worked_example_of_the_source() -> None:
    """96,000 - 9,600 guard - 66,000 active = 20,400."""
    pool = pool_of()
    running(pool, 1, 58_000, 8_000)
    (replica,) = pool
    assert fits(candidate(14_000, 4_000), replica, 0.0)
    assert fits(candidate(16_400, 4_000), replica, 0.0)
    assert not fits(candidate(16_401, 4_000), replica, 0.0)
    assert not fits(candidate(19_000, 4_000), replica, 0.0)


def test_a_seat_is_needed_too() -> None:
    pool = pool_of(spec(hard_cap_sequences=2))
    running(pool, 1, 10, 10)
    (replica,) = pool
    assert has_room(candidate(10, 10), replica, 0.0)
    assert not has_room(Candidate(9, Lane.INTERACTIVE, Reservation(20, 20, 0, 2)), replica, 0.0)


def test_freed_tokens_and_seats_accrue_to_the_holder_of_the_shadow_reservation() -> None:
    """86,400 - 60,000 are free, 26,400; 20,000 of them are kept."""
    pool = pool_of(spec(hard_cap_sequences=3))
    running(pool, 1, 59_000, 1_000)
    (replica,) = pool
    replica.shadow = queued(pool, 2, 19_000, 1_000)
    assert has_room(candidate(19_000, 1_000, key=2), replica, 0.0)
    assert has_room(candidate(6_300, 100), replica, 0.0)
    assert not has_room(candidate(6_301, 100), replica, 0.0)
    running(pool, 3, 10, 10)  # two of three seats are taken, the last is kept
    assert not has_room(candidate(10, 10), replica, 0.0)
    assert has_room(candidate(10, 10, key=2), replica, 0.0)


@pytest.mark.parametrize(("floor_only", "most"), [(False, 43_200), (True, 4_320)])
def test_bulk_keeps_to_its_part_of_a_shared_replica(*, floor_only: bool, most: int) -> None:
    pool = pool_of()
    (replica,) = pool
    replica.interactive_came(0.0)
    assert has_room(candidate(80_000, 1_000, Lane.BULK, floor_only=floor_only), replica, 0.0)  # one may run alone
    running(pool, 1, 900, 100, Lane.BULK)
    assert has_room(candidate(most - 1_100, 100, Lane.BULK, floor_only=floor_only), replica, 0.0)
    assert not has_room(candidate(most - 1_099, 100, Lane.BULK, floor_only=floor_only), replica, 0.0)
    assert has_room(candidate(60_000, 100), replica, 0.0)


def test_the_prefill_window_holds_back_what_the_budget_would_take() -> None:
    """A prompt of 2,000 at 1,000 a second is a debt of 1,750 after the 250 of the window: paid off in 1.75 s."""
    pool = pool_of(spec(prefill_tokens_per_second=1_000.0))
    running(pool, 1, 2_000, 100)
    (replica,) = pool
    replica.first_token(1, 1.0)
    assert has_room(candidate(400, 100), replica, 1.7)
    assert not passes_window(candidate(400, 100), replica, 1.7)
    assert fits(candidate(400, 100), replica, 1.75)


def test_the_holder_of_the_shadow_reservation_may_exceed_what_is_in_flight_by_one_prompt() -> None:
    pool = pool_of(spec(prefill_tokens_per_second=10_000.0, prefill_inflight_tokens=3_000))
    running(pool, 1, 2_000, 100)
    (replica,) = pool
    assert not passes_window(candidate(2_000, 100, key=2), replica, 1.0)  # 2,000 of 3,000 are in flight
    replica.shadow = queued(pool, 2, 2_000, 100)
    assert passes_window(candidate(2_000, 100, key=2), replica, 1.0)
    assert passes_window(candidate(100, 100), replica, 1.0)  # it comes after those who were tried
    replica.take(charge(3, 1_500, 100), 1.0)
    assert not passes_window(candidate(2_000, 100, key=2), replica, 2.0)  # one that exceeded it is on its way


def test_bulk_within_its_floor_goes_by_the_credit_of_the_floor() -> None:
    """The floor is 5 % of 1,000 a second. A prompt of 500 is a debt of it that is paid off in 10 s."""
    pool = pool_of(spec(prefill_tokens_per_second=1_000.0))
    (replica,) = pool
    asked = candidate(100, 100, Lane.BULK, floor_only=True)
    assert passes_window(asked, replica, 0.0)
    running(pool, 1, 500, 100, Lane.BULK)
    replica.first_token(1, 0.5)
    assert not passes_window(asked, replica, 9.9)
    assert passes_window(candidate(100, 100, Lane.BULK), replica, 9.9)
    assert passes_window(asked, replica, 10.0)
