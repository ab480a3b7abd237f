"""What a pool learns: the parts have their own tests, here is what reaches them."""

import pytest

from fakes.door import spec
from fakes.pools import awaited
from llmshed.admission.budget import Reservation
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
