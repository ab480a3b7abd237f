"""What those are told who leave their queue unserved."""

from dataclasses import replace

from fakes.door import spec
from fakes.pools import pool_of, queued, running, waiter
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.service.evicting import displaced_verdict, expired_verdict
from llmshed.admission.service.pool import Pool
from llmshed.admission.verdict import Decision

HIGH, LOW = PriorityClass.HIGH, PriorityClass.LOW


def full_pool() -> Pool:
    """Return a pool of 1,000 tokens that are held for some 11 s."""
    pool = pool_of(spec(gross_ceiling_tokens=1_000, guard_band_ratio=0.0, decode_seconds_per_token=0.1))
    running(pool, 100, 900, 100)
    return pool


def test_after_its_residence_it_is_a_time_out() -> None:
    pool = full_pool()
    queued(pool, 1)
    (out,) = pool.take_expired(10.0)
    verdict = expired_verdict(out, pool, 10.0)
    assert (verdict.decision, verdict.reason, verdict.status) == (Decision.REFUSE, Reason.QUEUE_TIMEOUT, 429)
    assert verdict.detail == "it waited for the 10 s that its lane permits"
    assert verdict.retry_after_seconds is not None
    assert verdict.retry_after_seconds > 0
    assert verdict.delay is not None


def test_before_that_it_is_its_own_deadline() -> None:
    pool = full_pool()
    waiting = waiter(pool, 1)
    waiting.expires_at = 3.0
    pool.join(waiting, 0.0)
    (out,) = pool.take_expired(3.0)
    verdict = expired_verdict(out, pool, 3.0)
    assert verdict.reason is Reason.DEADLINE_INFEASIBLE
    assert "after 3.0 s in the queue" in verdict.detail


def test_who_gives_its_place_away_is_told_to_whom() -> None:
    pool = full_pool()
    out = queued(pool, 1, 400, 100, Lane.INTERACTIVE, LOW)
    pool.leave(1, 1.0)
    above = waiter(pool, 2, 400, 100, Lane.INTERACTIVE, HIGH, now=1.0)
    beside = waiter(pool, 3, 400, 100, Lane.INTERACTIVE, LOW, now=1.0, tenant="other")
    assert displaced_verdict(out, above, pool, 1.0).reason is Reason.SHED_PRIORITY
    assert displaced_verdict(out, beside, pool, 1.0).reason is Reason.QUEUE_FULL


def test_it_is_told_the_wait_behind_all_who_wait_now() -> None:
    pool = full_pool()
    out = waiter(pool, 1)
    alone = expired_verdict(replace(out), pool, 10.0)
    queued(pool, 2, 400, 100, now=10.0)
    behind = expired_verdict(out, pool, 10.0)
    assert alone.delay is not None
    assert behind.delay is not None
    assert (alone.delay.tokens_ahead, behind.delay.tokens_ahead) == (0, 500)
    assert behind.equation is not None
    assert behind.equation.queued_tokens == 500
