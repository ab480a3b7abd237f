"""Each promise, broken and kept by a gate that says what it is told; every number can be added up in the head."""

import pytest

from fakes.scripted_gate import Stage, policy_of, spec_of
from llmshed.admission.actions import Dispatch, Released
from llmshed.admission.budget import Equation
from llmshed.admission.echo import Arrival
from llmshed.admission.events import BudgetChanged, Cancelled, NotSent, ReplicaDown, Tick
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.verdict import DelayTerms, WindowTerms

HIGH, NORMAL, LOW = PriorityClass
BULK = Lane.BULK


def test_a_refusal_that_only_running_work_explains_breaks_nothing() -> None:
    stage = Stage()
    stage.run(1, 0.0, 9000)
    assert stage.refuse(2, 1.0, 2000) == ()
    assert (stage.watched.judged, stage.watched.broken) == (1, 0)


def test_a_sentence_is_told_once() -> None:
    stage = Stage()
    stage.wait(1, 0.0, 2000, rank=LOW)
    stage.wait(2, 0.0, 9000, rank=LOW)
    (told,) = stage.refuse(3, 1.0, 5000)
    assert told == (
        "request 3 of rank 1, come at 1 s, token_budget_exhausted at 1 s: would have fitted without work of lower ranks"
    )
    assert stage.broken() == ()


def test_lower_work_that_waits_is_not_ahead() -> None:
    stage = Stage()
    stage.run(1, 0.0, 4000)
    stage.wait(2, 0.0, 4000, rank=LOW)
    assert stage.refuse(3, 1.0, 3000, rank=LOW) == (), "equals that came before are"
    assert stage.refuse(4, 1.0, 3000) != ()
    assert stage.refuse(5, 1.0, 7000) == (), "it does not fit without them either"
    assert stage.refuse(6, 1.0, 1500) == (), "there was room behind them: they are no cause"


def test_who_comes_back_before_its_time_is_told_the_old_reason_which_is_no_promise() -> None:
    stage = Stage()
    stage.run(1, 0.0, 4000)
    stage.wait(2, 0.0, 4000, rank=LOW)
    assert stage.refuse(3, 1.0, 3000, arrival=Arrival.EARLY) == ()
    assert stage.watched.judged == 0
    weighed = DelayTerms(0, 0, 9.0, 0.0, 1.0, 1.0, 9.0, 0.1)
    assert stage.refuse(4, 1.0, 3000, arrival=Arrival.EARLY, delay=weighed) != (), "it was decided on anew"
    assert stage.refuse(5, 1.0, 3000, arrival=Arrival.REPEAT) != (), "it came when it was told"


def test_a_better_rank_that_fits_nowhere_keeps_all_rooms() -> None:
    """One replica has seats, the other tokens; nobody passes who waits for both."""
    stage = Stage(specs=(spec_of("a", hard_cap_sequences=1), spec_of("b")))
    stage.run(1, 0.0, 5500, replica="a")
    stage.run(2, 0.0, 7000, replica="b")
    stage.wait(3, 0.0, 4000, rank=HIGH)
    stage.wait(4, 0.0, 2000, rank=LOW)
    assert stage.refuse(5, 1.0, 2000) == ()


def test_who_goes_ahead_is_put_where_there_is_room_for_it() -> None:
    """Most tokens are free where no seat is."""
    stage = Stage(specs=(spec_of("a", hard_cap_sequences=1), spec_of("b")))
    stage.run(1, 0.0, 1000, replica="a")
    stage.run(2, 0.0, 6000, replica="b")
    stage.wait(3, 0.0, 2000, rank=HIGH)
    stage.wait(4, 0.0, 2000, rank=LOW)
    assert stage.refuse(5, 1.0, 3000) == (), "of 4,000 the first takes 2,000"
    assert stage.refuse(6, 1.0, 2000) != (), "the rest is room for it but for the last"


def test_one_holder_of_a_shadow_reservation_is_ahead() -> None:
    """Half of the longest wait of 4 s."""
    stage = Stage()
    stage.run(1, 0.0, 4000)
    stage.wait(2, 0.0, 4000, rank=LOW)
    assert stage.refuse(3, 1.9, 3000) != ()
    assert stage.refuse(4, 2.0, 3000) == ()
    stage.wait(5, 0.0, 1000, rank=LOW)
    assert stage.refuse(6, 2.0, 1800) != (), "one alone, the largest: 4,000 of 6,000 are kept"


def test_lower_work_dispatched_since_it_came_is_held_against_a_timeout() -> None:
    stage = Stage()
    stage.run(1, 0.0, 4000, rank=LOW)
    stage.wait(2, 1.0, 5000)
    stage.run(3, 1.5, 3000, rank=LOW)
    assert stage.evict(2, 5.0, 5000) != ()
    stage.wait(4, 6.0, 5000)
    assert stage.evict(4, 10.0, 5000) == (), "all was there before it came"


@pytest.mark.parametrize("how", ["ended", "aged", "higher", "left", "down"])
def test_what_is_excepted(how: str) -> None:
    stage = Stage(specs=(spec_of("a"), spec_of("b", gross_ceiling_tokens=4000)) if how == "down" else (spec_of(),))
    stage.run(1, 0.0, 4000, rank=LOW)
    stage.wait(3, 0.5, 3000, rank=HIGH if how == "higher" else LOW)
    stage.wait(2, 1.0, 5000)
    if how == "left":
        stage.tell(Cancelled(3, sent=False), 1.2)
        stage.run(3, 1.3, 3000, rank=HIGH)
    else:
        stage.start(3, 2.6 if how == "aged" else 1.5, 3000, rank=HIGH if how == "higher" else LOW)
    if how == "ended":
        stage.end(3, 2.0, 3000)
        stage.run(4, 2.0, 3000)
    if how == "down":
        stage.tell(ReplicaDown("a"), 4.0)
    assert stage.evict(2, 5.0, 5000) == ()


def test_a_closed_prefill_window_explains_a_timeout() -> None:
    stage = Stage()
    stage.run(1, 0.0, 4000, rank=LOW)
    stage.wait(2, 1.0, 5000)
    stage.run(3, 1.5, 3000, rank=LOW)
    window = WindowTerms(2000.0, -1.0, 0, None, None, 0.0)
    assert stage.evict(2, 5.0, 5000, window=window) == ()
    stage.wait(4, 6.0, 5000)
    stage.run(5, 6.5, 3000, rank=LOW)
    crowded = WindowTerms(2000.0, 100.0, 400, 800, None, 0.0)
    assert stage.evict(4, 10.0, 5000, window=crowded) == ()


def test_a_smaller_budget_is_believed() -> None:
    stage = Stage()
    stage.wait(1, 0.0, 4000, rank=LOW)
    stage.tell(BudgetChanged("a", spec_of(gross_ceiling_tokens=5000).budget), 0.5)
    assert stage.refuse(2, 1.0, 6000) == ()


def test_seats_count_too() -> None:
    stage = Stage(specs=(spec_of(hard_cap_sequences=2),))
    stage.run(1, 0.0, 100)
    stage.wait(2, 0.1, 100)
    stage.run(3, 0.2, 100, rank=LOW)
    assert stage.evict(2, 4.1, 100, Reason.QUEUE_TIMEOUT) != ()
    assert stage.refuse(4, 5.0, 100, Reason.CONCURRENCY_LIMIT) == ()


def test_a_place_in_a_full_queue() -> None:
    stage = Stage()
    stage.run(1, 0.0, 10_000)
    stage.wait(2, 0.0, 1000)
    stage.wait(3, 0.0, 1000, rank=LOW)
    assert stage.refuse(4, 1.0, 1000, Reason.QUEUE_FULL, rank=LOW) == ()
    assert stage.refuse(5, 1.0, 1000, Reason.QUEUE_FULL) != ()
    assert stage.refuse(6, 1.0, 2500, Reason.QUEUE_FULL) == (), "2,500 beside 1,000 are more than 3,000"
    assert stage.refuse(7, 2.5, 1000, Reason.QUEUE_FULL) == (), "3 may hold a shadow reservation by now"
    assert stage.evict(2, 1.0, 1000, Reason.SHED_PRIORITY) != ()


def test_only_the_lowest_is_displaced() -> None:
    stage = Stage()
    stage.wait(2, 0.0, 1000)
    stage.wait(3, 0.0, 1000, rank=LOW)
    assert stage.evict(3, 1.0, 1000, Reason.SHED_PRIORITY, rank=LOW) == ()
    assert stage.evict(2, 1.0, 1000, Reason.SHED_PRIORITY) == ()


def test_bulk_keeps_to_its_floor_while_an_interactive_request_waits() -> None:
    """The floor is 500 tokens and 100 prompt tokens a second, with one prompt beforehand."""
    stage = Stage()
    stage.run(1, 0.0, 300, BULK)
    stage.wait(2, 1.0, 9900)
    stage.run(3, 1.0, 200, BULK)
    assert stage.evict(2, 5.0, 9900) == (), "500 tokens"
    stage.wait(4, 6.0, 9900)
    stage.run(5, 6.0, 10, BULK)
    told = stage.evict(4, 10.0, 9900)
    assert any("bulk request 5 went to a above its floor at 6 s" in one for one in told)


def test_one_bulk_request_may_always_run_alone() -> None:
    stage = Stage()
    stage.run(1, 0.0, 8000)
    stage.wait(2, 1.0, 3000)
    stage.run(3, 1.5, 2000, BULK)
    assert stage.evict(2, 5.0, 3000) == ()


def test_bulk_keeps_to_its_floor_of_prefill() -> None:
    """Prompts of 300 tokens one after the other: the first at once, the second once 200 more are owed, after 3 s."""
    for second_at, kept in ((4.0, True), (3.9, False)):
        stage = Stage()
        stage.run(1, 0.0, 7000)
        stage.wait(2, 1.0, 3500)
        stage.run(3, 1.0, 3000, BULK)
        stage.end(3, 2.0, 3000)
        stage.run(4, second_at, 3000, BULK)
        assert (stage.evict(2, 5.0, 3500, replica="a") == ()) is kept


def test_bulk_on_another_replica_or_before_it_came_takes_nothing_from_it() -> None:
    stage = Stage(specs=(spec_of("a"), spec_of("b")))
    stage.run(1, 0.0, 9000, replica="b")
    stage.run(2, 0.0, 8000, BULK)
    stage.run(3, 0.0, 1000, BULK)
    stage.wait(4, 1.0, 9900)
    stage.run(5, 2.0, 900, BULK)
    assert len(stage.evict(4, 5.0, 9900, replica="a")) == 1
    stage.wait(6, 6.0, 9900)
    stage.run(7, 6.0, 90, BULK)
    assert stage.evict(6, 10.0, 9900, replica="b") == ()
    stage.wait(8, 11.0, 9900)
    assert stage.evict(8, 15.0, 9900) == ()


def test_what_runs_on_replicas_for_bulk_alone_is_below_no_floor() -> None:
    stage = Stage(policy_of('["bulk"]'))
    stage.run(1, 0.0, 9000, BULK, LOW)
    stage.wait(2, 1.0, 1000, BULK)
    stage.run(3, 1.0, 1000, BULK, LOW)
    assert stage.evict(2, 40.0, 1000, lane=BULK) != ()


def test_bulk_has_its_share_of_a_replica_that_is_shared() -> None:
    stage = Stage()
    stage.run(1, 0.0, 4000, BULK)
    stage.wait(2, 0.0, 3000, rank=LOW)
    assert stage.refuse(3, 1.0, 2000, lane=BULK) == ()


def test_a_request_that_its_replica_never_read_is_followed_to_the_next() -> None:
    stage = Stage(specs=(spec_of("a"), spec_of("b")))
    stage.run(1, 0.0, 9000)
    verdict = stage.verdict(9000, Lane.INTERACTIVE, NORMAL)
    stage.tell(NotSent(1), 1.0, Released(1, "a", 9000), Dispatch(1, "b", verdict))
    stage.end(1, 2.0, 9000, "b")
    stage.run(2, 3.0, 9000, replica="b")
    assert stage.refuse(3, 3.0, 2000) == ()


def test_an_idle_replica_is_told_of_once_the_longest_prompt_could_have_been_paid_back() -> None:
    """A prompt of 800 tokens at 2,000 a second, and a second more."""
    stage = Stage()
    stage.run(1, 0.0, 8000)
    stage.wait(2, 0.0, 3000)
    stage.end(1, 1.0, 8000)
    stage.tell(Tick(), 2.3)
    assert stage.broken() == ()
    stage.tell(Tick(), 2.5)
    assert stage.broken() == ("a has been idle since 1 s although a request waits that it could serve",)
    stage.tell(Tick(), 2.6)
    assert stage.broken() == ()
    stage.start(2, 3.0, 3000)
    stage.end(2, 4.0, 3000)
    stage.tell(Tick(), 9.0)
    assert stage.broken() == ()


def test_bulk_may_be_held_back_to_the_rate_of_its_floor() -> None:
    """A prompt of 300 tokens at 100 a second, and a second more."""
    stage = Stage()
    stage.wait(1, 0.0, 3000, BULK)
    stage.tell(Tick(), 3.9)
    assert stage.broken() == ()
    stage.tell(Tick(), 4.1)
    assert len(stage.broken()) == 1
    stage.wait(2, 4.2, 100)
    stage.tell(Tick(), 5.2)
    assert stage.broken() == ()
    stage.tell(Tick(), 5.4)
    assert len(stage.broken()) == 1, "a second and 0.15 s for whoever is interactive"


def test_who_waits_for_a_larger_replica_than_the_idle_one_is_no_fault() -> None:
    stage = Stage(specs=(spec_of("a", gross_ceiling_tokens=2000), spec_of("b")))
    stage.run(1, 0.0, 9000, replica="b")
    stage.wait(2, 0.0, 3000)
    stage.tell(Tick(), 9.0)
    assert stage.broken() == ()


def test_a_dispatch_is_decided_on_the_sum_of_what_was_told() -> None:
    stage = Stage(specs=(spec_of("a"), spec_of("b")))
    stage.run(1, 0.0, 300)
    stage.run(2, 0.0, 500)
    stage.run(3, 0.0, 700, replica="b")
    stage.end(1, 1.0, 300)
    for key, active, told in (
        (4, 500, ()),
        (5, 800, ("request 5 was sent to a on 800 active tokens, the reservations there sum to 600",)),
    ):
        equation = Equation(10_000, 0, active, 0, 1, 8)
        stage.come(key, 2.0, Dispatch(key, "a", stage.verdict(100, Lane.INTERACTIVE, NORMAL, equation=equation)))
        assert stage.broken() == told


def test_a_reservation_is_given_back_whole() -> None:
    stage = Stage()
    stage.run(1, 0.0, 300)
    stage.end(1, 1.0, 200)
    assert stage.broken() == ("request 1 took 300 and gave 200 back",)
