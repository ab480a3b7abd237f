"""Who goes next when something came free: ranks in order, who is passed, who takes the shadow reservation."""

from fakes.door import spec
from fakes.pools import charge, pool_of, queued, running
from llmshed.admission.ledger import Charge
from llmshed.admission.policy import BulkShare
from llmshed.admission.queueing.waiting import Waiting
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.service.choice import MOST_LOOKED_AT
from llmshed.admission.service.pool import Pool
from llmshed.admission.service.serving import next_start

BULK = Lane.BULK
HIGH, LOW = PriorityClass.HIGH, PriorityClass.LOW


def charge_of(waiting: Waiting, now: float) -> Charge:
    return charge(
        waiting.key, waiting.input_tokens, waiting.total_tokens - waiting.input_tokens, waiting.chosen.lane, now
    )


def started(pool: Pool, now: float) -> list[int]:
    """Dispatch whoever may go, as the controller does, and return the keys in their order."""
    keys = []
    while (found := next_start(pool, now)) is not None:
        waiting, replica = found
        pool.leave(waiting.key, now)
        keys.append(waiting.key)
        replica.take(charge_of(waiting, now), now)
        assert replica.free_tokens >= 0
    return keys


def test_ranks_go_in_order_and_a_lower_one_not_while_a_higher_one_waits() -> None:
    """10,000 tokens: the first four of the order take them, the fifth waits, and who is behind it waits with it."""
    pool = pool_of(spec(gross_ceiling_tokens=10_000, guard_band_ratio=0.0))
    queued(pool, 1, 10, 10, Lane.INTERACTIVE, LOW)
    queued(pool, 2, 1_000, 3_000)
    queued(pool, 3, 1_000, 2_000, Lane.INTERACTIVE, HIGH)
    queued(pool, 4, 1_000, 3_000)
    assert started(pool, 0.0) == [3, 2]
    assert pool.waiting == 2


def test_one_that_does_not_fit_is_passed_by_smaller_ones_of_its_rank_only() -> None:
    pool = pool_of(spec(gross_ceiling_tokens=10_000, guard_band_ratio=0.0))
    running(pool, 100, 3_000, 2_000)
    queued(pool, 1, 1_000, 5_000)
    queued(pool, 2, 1_000, 1_000)
    queued(pool, 3, 100, 100, Lane.INTERACTIVE, LOW)
    assert started(pool, 0.0) == [2]


def test_from_half_its_residence_on_what_comes_free_accrues_to_the_head() -> None:
    """It waits for at most 10 s, so at 5 s the shadow reservation is its own, and 1,000 beside it stay for others."""
    pool = pool_of(spec(gross_ceiling_tokens=10_000, guard_band_ratio=0.0))
    (replica,) = pool
    running(pool, 100, 3_000, 2_000)
    queued(pool, 1, 1_000, 5_000)
    assert started(pool, 0.0) == []
    assert pool.look_at == 5.0
    queued(pool, 2, 1_000, 1_000, now=5.0)
    assert started(pool, 5.0) == []
    assert replica.shadow is not None
    assert replica.shadow.key == 1
    pool.give_back(replica, 100, 6.0)
    assert started(pool, 6.0) == [1, 2]
    assert replica.shadow is None


def test_who_holds_the_shadow_reservation_is_tried_wherever_it_stands() -> None:
    """Its tenant was served meanwhile, so that more than are looked at stand before it, and all lack what is kept."""
    pool = pool_of(spec(gross_ceiling_tokens=10_000, guard_band_ratio=0.0))
    (replica,) = pool
    running(pool, 100, 3_000, 4_000)
    queued(pool, 1, 1_000, 5_000, tenant="busy")
    queued(pool, 2, 1_000, 5_000, tenant="calm")
    assert started(pool, 5.0) == []
    assert replica.shadow is not None
    assert replica.shadow.key == 1
    pool.queues[Lane.INTERACTIVE].served("busy", 1.0, 100_000)
    for key in range(3, 3 + MOST_LOOKED_AT):
        queued(pool, key, 1_000, 4_500, tenant=f"newcomer-{key}", now=5.0)
    assert started(pool, 5.0) == []
    pool.give_back(replica, 100, 6.0)
    assert started(pool, 6.0) == [1]


def test_what_is_free_beside_the_shadow_reservation_goes_to_others() -> None:
    pool = pool_of(spec(gross_ceiling_tokens=10_000, guard_band_ratio=0.0), spec("r2", hard_cap_sequences=0))
    running(pool, 100, 1_000, 500)
    running(pool, 101, 1_000, 1_500)
    queued(pool, 1, 1_000, 6_000)
    pool.give_back(pool.replicas["r1"], 100, 5.0)  # 7,500 are free, of which 7,000 are the head's
    queued(pool, 2, 100, 400, now=5.0)
    queued(pool, 3, 100, 401, now=5.0)
    assert started(pool, 5.0) == [1, 2]


def test_bulk_goes_while_interactive_work_waits_only_within_its_floor() -> None:
    """5 % of 96,000 are 4,800 reserved tokens; of prefill the floor here is all of the assumed 1,000 a second."""
    pool = pool_of(spec(guard_band_ratio=0.0, bulk=BulkShare(prefill_cap_ratio=1.0, prefill_floor_ratio=1.0)))
    (replica,) = pool
    running(pool, 100, 85_000, 1_000)  # 10,000 are free
    queued(pool, 1, 10_000, 1_000)  # interactive, and does not fit
    replica.interactive_came(0.0)
    queued(pool, 2, 3_000, 1_000, BULK)
    queued(pool, 3, 500, 100, BULK)
    queued(pool, 4, 500, 500, BULK)
    assert started(pool, 0.0) == [2]
    replica.first_token(2, 3.0)  # by now the floor has paid for its prompt
    assert started(pool, 3.0) == [3]
    replica.first_token(3, 4.0)
    assert started(pool, 4.0) == []  # 4,600 of 4,800 are held, 200 left
    pool.give_back(replica, 2, 4.5)
    assert started(pool, 4.5) == [4]


def test_bulk_goes_within_its_floor_though_several_interactive_classes_wait() -> None:
    pool = pool_of(spec(guard_band_ratio=0.0, bulk=BulkShare(prefill_cap_ratio=1.0, prefill_floor_ratio=1.0)))
    (replica,) = pool
    running(pool, 100, 85_000, 1_000)  # 10,000 are free
    queued(pool, 1, 10_000, 1_000)
    queued(pool, 2, 10, 10, Lane.INTERACTIVE, LOW)  # would fit, and stands behind the other
    replica.interactive_came(0.0)
    queued(pool, 3, 3_000, 1_000, BULK)
    queued(pool, 4, 10, 10, BULK, LOW)
    assert started(pool, 0.0) == [3]


def test_bulk_within_its_floor_has_the_shadow_reservation_before_interactive_work_that_has_waited_long() -> None:
    """Both lack room, and such work never ceases to wait: else bulk would never come to it."""
    pool = pool_of(spec(gross_ceiling_tokens=10_000, guard_band_ratio=0.0))
    (replica,) = pool
    running(pool, 100, 8_000, 1_500)
    replica.interactive_came(0.0)
    queued(pool, 1, 2_000, 1_000)
    queued(pool, 2, 2_000, 1_000, BULK)
    assert started(pool, 9.0) == []
    assert replica.shadow is not None
    assert replica.shadow.key == 2
    pool.give_back(replica, 100, 9.5)
    assert started(pool, 9.5) == [1, 2]  # there is room for both
    queued(pool, 3, 5_000, 1_000, now=9.5)
    queued(pool, 4, 5_000, 1_000, BULK, now=9.5)
    assert started(pool, 15.0) == []
    assert replica.shadow.key == 3  # bulk's floor has yet to pay for its last prompt


def test_who_is_larger_than_a_derated_budget_keeps_nothing_from_others() -> None:
    pool = pool_of(spec(gross_ceiling_tokens=10_000, guard_band_ratio=0.0))
    (replica,) = pool
    running(pool, 100, 4_000, 4_000)
    replica.interactive_came(0.0)
    queued(pool, 1, 4_000, 1_000, BULK)
    assert started(pool, 1.0) == []
    assert replica.shadow is not None
    replica.renew(
        spec(gross_ceiling_tokens=4_000, guard_band_ratio=0.0).budget, shared=True, engine_share_seconds=1.4, now=2.0
    )
    pool.give_back(replica, 100, 3.0)
    queued(pool, 2, 1_000, 1_000, now=3.0)
    assert started(pool, 3.0) == [2]
    assert replica.shadow is None


def test_bulk_of_a_pool_of_its_own_has_no_floor_and_no_bound() -> None:
    pool = pool_of(shared=False)
    for key in range(4):
        queued(pool, key, 20_000, 1_000, BULK)
    assert started(pool, 0.0) == [0, 1, 2, 3]


def test_only_so_many_are_tried() -> None:
    pool = pool_of(spec(gross_ceiling_tokens=10_000, guard_band_ratio=0.0))
    running(pool, 100, 4_000, 1_000)
    for key in range(MOST_LOOKED_AT):
        queued(pool, key, 3_000, 2_001)
    queued(pool, 50, 100, 100)
    assert started(pool, 0.0) == []
    pool.leave(0, 0.0)
    assert started(pool, 0.0) == [50]


def test_the_window_alone_says_when_to_look_again() -> None:
    """The prompt of 2,250 at 1,000 a second takes 2,000 more than the window holds: paid off in 2 s."""
    pool = pool_of(spec(prefill_tokens_per_second=1_000.0))
    (replica,) = pool
    running(pool, 100, 2_250, 100)
    replica.first_token(100, 0.5)
    queued(pool, 1, 100, 100, now=0.5)
    assert started(pool, 0.5) == []
    assert pool.look_at == 2.0
    assert started(pool, 2.0) == [1]


def test_those_behind_a_head_without_room_are_timed_too() -> None:
    """The head lacks tokens until something ends; the one behind it lacks but the window, which is open in 2 s."""
    pool = pool_of(spec(gross_ceiling_tokens=10_000, guard_band_ratio=0.0, prefill_tokens_per_second=1_000.0))
    (replica,) = pool
    running(pool, 100, 2_250, 4_000)
    replica.first_token(100, 0.5)
    queued(pool, 1, 1_000, 5_000, now=0.5)
    queued(pool, 2, 100, 100, now=0.5)
    assert started(pool, 0.5) == []
    assert pool.look_at == 2.0
    assert started(pool, 2.0) == [2]


def test_bulk_is_tried_again_when_no_interactive_request_came_for_a_minute() -> None:
    """Half of 86,400 is 43,200: the second of 30,000 tokens has to wait for the end of that."""
    pool = pool_of()
    (replica,) = pool
    replica.interactive_came(3.0)
    running(pool, 100, 28_000, 2_000, BULK, now=3.0)
    replica.first_token(100, 4.0)
    queued(pool, 1, 28_000, 2_000, BULK, now=4.0)
    looks = []
    while (now := pool.look_at or 4.0) < 63.0:
        assert started(pool, now) == []
        looks.append(now)
    assert looks
    assert started(pool, 63.0) == [1]


def test_nobody_starts_on_a_replica_that_is_down_or_derated_below_what_runs() -> None:
    pool = pool_of(spec("r1"), spec("r2"))
    queued(pool, 1)
    pool.replicas["r1"].up = False
    running_on = next_start(pool, 0.0)
    assert running_on is not None
    assert running_on[1].spec.name == "r2"
    pool.replicas["r2"].up = False
    assert next_start(pool, 0.0) is None
