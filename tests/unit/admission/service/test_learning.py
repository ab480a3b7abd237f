"""What a pool learns: the parts have their own tests, here is what reaches them."""

import pytest

from fakes.door import spec
from fakes.pools import awaited, pool_of, running
from llmshed.admission.budget import Reservation
from llmshed.admission.request import Lane
from llmshed.admission.service.learning import FullRates, Learnt
from llmshed.admission.verdict import DelayTerms

SIZE = Reservation(400, 600, 0, 1)


def terms(wait_seconds: float) -> DelayTerms:
    return DelayTerms(0, 0, wait_seconds, 0.0, 1.0, 1.0, wait_seconds, 0.0)


def test_a_promise_drains_by_the_slower_of_tokens_and_prompts_with_a_quarter_to_spare() -> None:
    learnt = Learnt({})
    assert learnt.promised_seconds(1, 0.0) == 0.0
    learnt.promise(1, SIZE, FullRates(100.0, 400.0), 0.0)
    assert learnt.promised_seconds(1, 0.0) == pytest.approx(12.5)
    learnt.promise(2, SIZE, FullRates(1_000.0, 100.0), 0.0)
    assert learnt.promised_seconds(2, 0.0) == pytest.approx(5.0)
    assert learnt.promised_seconds(0, 0.0) == 0.0
    assert learnt.promised_seconds(1, 100.0) == 0.0


def test_promises_drain_at_the_full_rate_while_there_is_room_for_all() -> None:
    """Half a minute after the last release the mean rate is a third of a full pool's: 1 - 1 / e of it is forgotten."""
    busy, idle = Learnt({}), Learnt({})
    for learnt in (busy, idle):
        learnt.promise(1, SIZE, FullRates(20.0, 1_000.0), 0.0)
    idle.idled(30.0)
    assert idle.promised_seconds(1, 30.0) == pytest.approx(1.25 * 400 / 20)
    assert busy.promised_seconds(1, 30.0) > 2 * idle.promised_seconds(1, 30.0)


def test_waits_that_were_longer_than_foreseen_raise_the_factor_of_their_rank() -> None:
    learnt = Learnt({})
    for second in range(100):
        learnt.waited(1, terms(1.0), 2.0, float(second))
    assert learnt.factors[1].value(101.0) == pytest.approx(2.0, rel=0.06)
    assert learnt.factors[0].value(101.0) == 1.0


def test_refused_requests_teach_as_soon_as_they_would_have_fit() -> None:
    """Each would have waited for 1,000 tokens that were foreseen in 1 s and came after 3."""
    learnt = Learnt({"r1": awaited(spec(gross_ceiling_tokens=0, guard_band_ratio=0.0))})
    now = 0.0
    for _ in range(50):
        learnt.follow(1, terms(1.0), SIZE, now)
        learnt.advance(now)
        assert len(learnt.ghosts) == 1
        now += 3.0
        learnt.released("r1", 1_000, now)
        learnt.advance(now)
        assert len(learnt.ghosts) == 0
    assert learnt.factors[1].value(now + 1.0) == pytest.approx(3.0, rel=0.06)


def test_where_seats_bind_a_refused_request_is_followed_until_one_is_free() -> None:
    pool = pool_of(spec(hard_cap_sequences=1))
    running(pool, 1, 400, 600)
    pool.learnt.follow(1, terms(5.0), SIZE, 0.0)
    pool.learnt.advance(1.0)
    assert len(pool.learnt.ghosts) == 1
    pool.give_back(pool.replicas["r1"], 1, 4.0)
    pool.learnt.advance(4.0)
    assert (len(pool.learnt.ghosts), pool.learnt.ghosts.fitted) == (0, 1)


def test_refused_bulk_is_followed_until_its_part_of_the_budget_has_room() -> None:
    """Half of 86,400 tokens is the most of bulk while interactive work comes."""
    pool = pool_of()
    replica = pool.replicas["r1"]
    replica.interactive_came(0.0)
    running(pool, 1, 40_000, 3_000, Lane.BULK)
    replica.first_token(1, 0.5)
    pool.learnt.follow(4, terms(5.0), SIZE, 0.5)
    pool.learnt.advance(1.0)
    assert len(pool.learnt.ghosts) == 1
    pool.give_back(replica, 1, 4.0)
    pool.learnt.advance(4.0)
    assert (len(pool.learnt.ghosts), pool.learnt.ghosts.fitted) == (0, 1)


def test_a_prompt_that_the_window_alone_keeps_out_is_over_when_that_opens_though_nothing_happens_then() -> None:
    """1,000 tokens a second, of which a quarter of a second may come at once: 1,250 tokens are paid off after 1 s."""
    pool = pool_of(spec(prefill_tokens_per_second=1_000.0, prefill_inflight_tokens=10_000))
    running(pool, 1, 1_250, 10)
    pool.replicas["r1"].first_token(1, 0.0)
    pool.learnt.follow(1, terms(1.0), SIZE, 0.0)
    pool.learnt.advance(0.0)
    assert len(pool.learnt.ghosts) == 1
    pool.learnt.advance(3_600.0)
    assert pool.learnt.ghosts.fitted == 1
    assert pool.learnt.factors[1].value(3_600.0) == pytest.approx(1.0, abs=0.05)
