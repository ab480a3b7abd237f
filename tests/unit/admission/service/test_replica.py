"""One replica that work waits for: what is free, what is kept, what waits before whom."""

import math

from fakes.door import spec
from fakes.pools import awaited, charge, pool_of, queued
from llmshed.admission.policy import ReplicaBudget
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.service.replica import KEPT_FOR_INTERACTIVE_SECONDS

HIGH, LOW = PriorityClass.HIGH, PriorityClass.LOW


def test_what_is_free_is_the_safe_budget_less_what_runs() -> None:
    replica = awaited(spec(hard_cap_sequences=3))
    replica.take(charge(1, 58_000, 8_000), 0.0)
    assert (replica.free_tokens, replica.free_sequences) == (20_400, 2)
    replica.renew(ReplicaBudget(10_000, 0.1, 0), shared=True, engine_share_seconds=1.4, now=1.0)
    assert (replica.free_tokens, replica.free_sequences) == (9_000 - 66_000, -1)
    replica.give_back(1, 2.0)
    assert (replica.free_tokens, replica.free_sequences) == (9_000, 0)


def test_the_shadow_reservation_is_kept_from_all_but_its_holder() -> None:
    pool = pool_of()
    (replica,) = pool
    replica.shadow = queued(pool, 7, 18_000, 1_000)
    assert (replica.held_tokens(7), replica.held_sequences(7)) == (0, 0)
    assert (replica.held_tokens(8), replica.held_sequences(8)) == (19_000, 1)
    assert replica.state_at(0.0).shadow_tokens == 19_000
    pool.leave(7, 1.0)
    assert (replica.held_tokens(8), replica.state_at(1.0).shadow_tokens) == (0, 0)


def test_bulk_has_its_part_of_the_budget_while_interactive_work_comes() -> None:
    """Half of 86,400 is 43,200; 13,200 are held."""
    replica = awaited()
    assert replica.bulk_room_tokens(0.5, 0.0) == math.inf  # one may always run alone
    replica.take(charge(1, 13_000, 200, Lane.BULK), 0.0)
    assert replica.bulk_room_tokens(0.5, 0.0) == math.inf  # no interactive request ever came
    replica.interactive_came(5.0)
    assert replica.bulk_room_tokens(0.5, 5.0) == 30_000
    assert replica.bulk_room_tokens(0.05, 5.0) == 4_320 - 13_200
    assert replica.bulk_room_tokens(0.5, 4.9 + KEPT_FOR_INTERACTIVE_SECONDS) == 30_000
    assert replica.bulk_room_tokens(0.5, 5.0 + KEPT_FOR_INTERACTIVE_SECONDS) == math.inf
    alone = awaited(shared=False)
    alone.take(charge(1, 13_000, 200, Lane.BULK), 0.0)
    alone.interactive_came(0.0)
    assert alone.bulk_room_tokens(0.5, 0.0) == math.inf


def test_what_goes_before_a_newcomer_is_all_of_better_ranks_and_a_part_of_its_own() -> None:
    pool = pool_of()
    (replica,) = pool
    queued(pool, 1, 800, 200, priority_class=HIGH)
    queued(pool, 2, 1_600, 400)
    queued(pool, 3, 400, 100, priority_class=LOW)
    queued(pool, 4, 9_000, 1_000, Lane.BULK)
    ahead = replica.ahead(1, 0.5)  # interactive, normal
    assert (ahead.tokens, ahead.input_tokens) == (1_000 + 1_000, 800 + 800)
    assert (replica.ahead(5, 1.0).tokens, replica.ahead(5, 1.0).sequences) == (13_500, 4)
    assert replica.ahead(0, 0.0).tokens == 0
    assert replica.state_at(0.0).equation.queued_tokens == 13_500
    assert replica.equation_before(2_000).headroom_tokens == 84_400


def test_what_ends_before_its_first_token_is_in_flight_no_more() -> None:
    replica = awaited(spec(prefill_tokens_per_second=1_000.0))
    replica.take(charge(1, 2_000, 100), 0.0)
    assert replica.window.terms(0.0).inflight_tokens == 2_000
    replica.give_back(1, 1.0)
    assert replica.window.terms(1.0).inflight_tokens == 0
