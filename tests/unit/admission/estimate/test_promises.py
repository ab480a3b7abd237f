"""Promised work against hand-made sums: a full pool releases 1,000 tokens a second."""

import math

import pytest

from llmshed.admission.estimate.promises import PromisedWork


def test_nothing_promised_adds_nothing() -> None:
    assert PromisedWork().seconds(5.0) == 0.0


def test_what_is_booked_drains_at_the_full_pools_rate_while_no_other_is_known() -> None:
    promised = PromisedWork()
    promised.book(4_000, 1_000.0, now=0.0)
    assert promised.seconds(0.0) == pytest.approx(4.0)
    promised.book(2_000, 1_000.0, now=0.0)
    assert promised.seconds(0.0) == pytest.approx(6.0)


def test_the_rate_becomes_what_was_measured() -> None:
    """250 tokens every half second are 500 a second: after ten time constants nothing else is left."""
    promised = PromisedWork()
    promised.book(1, 1_000.0, now=0.0)
    for step in range(600):
        promised.released(250, now=step / 2)
    promised.book(5_000, 1_000.0, now=300.0)
    assert promised.seconds(300.0) == pytest.approx(10.0, rel=0.02)


def test_it_drains_by_time_even_when_nothing_is_released() -> None:
    """At first at 1,000 a second, falling by exp(-t/30): 1,000 x 30 (1 - exp(-3/30)) = 2,855 tokens in 3 s."""
    promised = PromisedWork()
    promised.book(10_000, 1_000.0, now=0.0)
    for step in range(1, 301):
        promised.seconds(step / 100)
    rate = 1_000 * math.exp(-0.1)
    assert promised.seconds(3.0) == pytest.approx((10_000 - 2_855) / rate, rel=0.01)


def test_it_is_bounded_by_what_drains_in_a_minute_and_gone_when_that_is_over() -> None:
    promised = PromisedWork()
    for _ in range(1_000):
        promised.book(10_000, 1_000.0, now=0.0)
    assert promised.seconds(0.0) == pytest.approx(60.0)
    for step in range(610):
        promised.released(100, now=step / 10)
        if step == 300:
            assert promised.seconds(30.0) == pytest.approx(30.0, rel=0.05)
    assert promised.seconds(61.0) == 0.0


def test_a_pool_that_stopped_releasing_still_tells_at_most_a_minute() -> None:
    promised = PromisedWork()
    promised.book(50_000, 1_000.0, now=0.0)
    promised.released(0, now=10.0)
    promised.released(0, now=20.0)
    assert promised.seconds(30.0) <= 60.0
    promised.book(1_000_000, 1_000.0, now=400.0)
    assert promised.seconds(400.0) == pytest.approx(60.0)
    assert promised.seconds(461.0) == 0.0


def test_whatever_was_promised_is_forgotten_a_minute_after_the_last_refusal() -> None:
    """A pool that released 1,000 tokens a second and stopped: by the least rate a minute of that is ten minutes."""
    promised = PromisedWork()
    for second in range(300):
        promised.released(1_000, now=float(second))
    promised.book(10**9, 1_000.0, now=300.0)
    promised.book(1, 1_000.0, now=310.0)
    told = [promised.seconds(float(second)) for second in range(311, 371)]
    assert min(told[:-1]) == pytest.approx(60.0)
    assert told[-1] == 0.0


def test_a_clock_that_stands_changes_nothing() -> None:
    promised = PromisedWork()
    promised.book(4_000, 1_000.0, now=5.0)
    assert [promised.seconds(5.0), promised.seconds(5.0)] == pytest.approx([4.0, 4.0])


def test_while_there_was_room_for_all_it_drained_at_the_full_pools_rate_and_the_mean_one_stays() -> None:
    """8,000 less 5 s of 1,000 a second; releases of a busier pool before that are not forgotten over the silence."""
    promised = PromisedWork()
    promised.book(8_000, 1_000.0, now=0.0)
    promised.idled(5.0)
    assert promised.seconds(5.0) == pytest.approx(3.0)
    promised.idled(4.0)
    assert promised.seconds(5.0) == pytest.approx(3.0)
    promised.idled(100.0)
    assert promised.seconds(100.0) == 0.0
