"""The wait of a newcomer, by hand: prefill at 1,000 tokens a second, decode at 0.1 s a token."""

import math
from typing import Any

import pytest

from fakes.door import spec
from fakes.pools import asker_of, places_of, pool_of, queued, running
from llmshed.admission.policy import ReplicaSpec
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.service.foresight import Asker, Foresight, foresee, own_seconds, spare_seconds
from llmshed.admission.service.pool import Pool


def slow(gross: int = 10_000, **changes: Any) -> ReplicaSpec:
    """Return a replica that lends `gross` tokens and whose prefill is not metered."""
    return spec(gross_ceiling_tokens=gross, guard_band_ratio=0.0, decode_seconds_per_token=0.1, **changes)


def foreseen(pool: Pool, asker: Asker, now: float = 0.0) -> Foresight:
    (place,) = places_of(pool, asker)
    return foresee(asker, place.option, place.replica, pool, now)


def test_it_waits_until_what_it_and_the_work_ahead_lack_comes_free() -> None:
    """Prompts are worked on one after the other at 1,000 a second: the answers end at 4 + 40 and at 4 + 3.8 + 80 s."""
    pool = pool_of(slow())
    running(pool, 1, 4_000, 400)
    running(pool, 2, 3_800, 800)
    assert foreseen(pool, asker_of(700, 300)).delay.wait_seconds == 0.0  # 1,000 are free
    newcomer = asker_of(1_000, 1_000)
    assert foreseen(pool, newcomer).delay.release_seconds == pytest.approx(44.0, rel=0.01)
    assert foreseen(pool, newcomer, 2.0).delay.release_seconds == pytest.approx(42.0, rel=0.01)
    queued(pool, 3, 2_900, 1_000)  # with it 4,900 lack, and the first answer gives 4,400
    behind = foreseen(pool, newcomer)
    assert (behind.ahead.tokens, behind.delay.tokens_ahead, behind.delay.prefill_tokens_ahead) == (3_900, 3_900, 2_900)
    assert behind.delay.release_seconds > 44.0
    assert behind.delay.wait_seconds == behind.delay.release_seconds  # nothing is learnt yet: share 1, factor 1


def test_what_came_free_is_not_expected_once_more() -> None:
    """The first of two gives its 4,400 back; what still lacks comes with the second, at 4 + 3.8 + 80 s."""
    pool = pool_of(slow())
    (replica,) = pool
    running(pool, 1, 4_000, 400)
    running(pool, 2, 3_800, 800)
    assert foreseen(pool, asker_of(1_000, 1_000)).delay.release_seconds == pytest.approx(44.0, rel=0.01)
    pool.give_back(replica, 1, 0.05)
    assert foreseen(pool, asker_of(5_000, 1_000), 0.06).delay.release_seconds == pytest.approx(87.7, rel=0.01)


def test_seats_are_waited_for_likewise() -> None:
    pool = pool_of(slow(hard_cap_sequences=1))
    running(pool, 1, 1_000, 100)
    assert foreseen(pool, asker_of(10, 10)).delay.release_seconds == pytest.approx(11.0, rel=0.01)


def test_what_higher_ranks_take_of_what_comes_free_is_not_expected() -> None:
    """The one running answer ends in 11 s, and hardly anything of what came free was ever left for bulk."""
    pool = pool_of(slow(gross=1_100))
    (replica,) = pool
    for key in range(200):
        running(pool, key, 1_000, 100, priority_class=PriorityClass.HIGH)
        pool.give_back(replica, key, 0.0)
    running(pool, 200, 1_000, 100)
    assert foreseen(pool, asker_of(10, 10, priority_class=PriorityClass.HIGH)).delay.share == 1.0
    low = foreseen(pool, asker_of(10, 10, Lane.BULK)).delay
    assert low.share < 0.1
    assert low.wait_seconds == pytest.approx(low.release_seconds / low.share)


def test_a_higher_class_waits_for_what_is_before_it_only() -> None:
    pool = pool_of(slow())
    running(pool, 1, 4_000, 6_000)
    queued(pool, 2, 3_000, 1_000)
    assert foreseen(pool, asker_of(1_000, 1_000, priority_class=PriorityClass.HIGH)).ahead.tokens == 0
    assert foreseen(pool, asker_of(1_000, 1_000, priority_class=PriorityClass.LOW)).ahead.tokens == 4_000


def test_what_is_kept_for_a_holder_of_a_lower_rank_lacks_too() -> None:
    pool = pool_of(slow())
    (replica,) = pool
    running(pool, 1, 3_000, 2_000)
    replica.shadow = queued(pool, 2, 4_000, 1_000, Lane.BULK)
    assert foreseen(pool, asker_of(100, 100)).delay.release_seconds > 0  # 5,000 are free, and all of it is kept


def test_what_no_release_gives_is_waited_for_without_end() -> None:
    pool = pool_of(slow(gross=1_000))
    assert math.isinf(foreseen(pool, asker_of(1_000, 1_000)).delay.wait_seconds)


def test_the_prompts_ahead_are_let_in_at_the_rate_of_the_window() -> None:
    """At 1,000 a second with 250 at once: behind 2,250 tokens of prompts 2 s."""
    pool = pool_of(slow(gross=96_000, prefill_tokens_per_second=1_000.0, prefill_inflight_tokens=10_000))
    queued(pool, 1, 2_250, 100)
    found = foreseen(pool, asker_of(100, 100))
    assert found.delay.prefill_seconds >= 2.0
    assert found.delay.prefill_binds
    assert found.first_token_seconds == pytest.approx(found.delay.wait_seconds + 0.1)


def test_a_whole_answer_takes_its_decode_too() -> None:
    pool = pool_of(slow(prefill_tokens_per_second=1_000.0))
    first, whole, both = (
        asker_of(400, 100, first_token_deadline=12.0),
        asker_of(400, 100, deadline=22.0),
        asker_of(400, 100, deadline=22.0, first_token_deadline=7.4),
    )
    for asker, own, spare in [(first, 0.4, 9.6), (whole, 10.4, 9.6), (both, 10.4, 5.0), (asker_of(), 0.4, math.inf)]:
        (place,) = places_of(pool, asker)
        assert own_seconds(asker, place.option, place.replica, pool) == pytest.approx(own)
        assert spare_seconds(asker, place.option, place.replica, pool, 2.0) == pytest.approx(spare)
        assert asker.hurries == math.isfinite(spare)


def test_bulk_waits_for_its_part_of_the_budget() -> None:
    """Bulk may hold 43,200 of 86,400 and holds 43,000: half of what comes free is taken to be bulk's."""
    pool = pool_of(spec(decode_seconds_per_token=0.1))
    (replica,) = pool
    running(pool, 1, 10_000, 100)
    running(pool, 2, 42_000, 1_000, Lane.BULK)
    assert foreseen(pool, asker_of(900, 100, Lane.BULK)).delay.release_seconds == 0.0
    replica.interactive_came(0.0)
    assert foreseen(pool, asker_of(900, 100, Lane.BULK)).delay.release_seconds > 0.0
    assert foreseen(pool, asker_of(900, 100)).delay.release_seconds == 0.0
