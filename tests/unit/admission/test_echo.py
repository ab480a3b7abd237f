"""What is known of a client that comes back."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.door import request
from llmshed.admission.echo import KNOWN_FOR_SECONDS, Arrival, Echo, EchoBook
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Request

FULL = Reason.TOKEN_BUDGET_EXHAUSTED


def known_as(fingerprint: str | None, declared_repeats: int = 0) -> Request:
    return replace(request(1, 100), fingerprint=fingerprint, declared_repeats=declared_repeats)


def test_what_nobody_refused_is_a_first_arrival() -> None:
    book = EchoBook()
    assert book.arrival(known_as("a"), 0.0) == Echo(Arrival.FIRST)
    assert book.arrival(known_as("a"), 1.0) == Echo(Arrival.FIRST), "an arrival alone is no refusal"
    assert book.arrival(known_as(None), 1.0) == Echo(Arrival.FIRST)


def test_a_repeat_before_its_told_instant_is_early_with_what_remains_of_its_wait() -> None:
    book = EchoBook()
    book.refused("a", FULL, 14.0, 10.0)
    assert book.arrival(known_as("a"), 11.5) == Echo(Arrival.EARLY, 2.5, FULL)
    assert book.arrival(known_as("a"), 13.0) == Echo(Arrival.EARLY, 1.0, FULL), "it books nothing anew"
    assert book.arrival(known_as("b"), 13.0) == Echo(Arrival.FIRST)
    assert book.arrival(known_as("a"), 14.0) == Echo(Arrival.REPEAT), "at the told instant it is on time"


def test_a_declared_repeat_is_believed_only_where_nothing_is_known() -> None:
    book = EchoBook()
    book.refused("a", FULL, 14.0, 10.0)
    assert book.look(known_as("b", 1), 11.0) == Echo(Arrival.DECLARED)
    assert book.look(known_as(None, 2), 11.0) == Echo(Arrival.DECLARED)
    assert book.look(known_as("a", 1), 11.0).arrival is Arrival.EARLY
    assert book.look(known_as("a", 0), 15.0).arrival is Arrival.REPEAT, "no client has to say so"


def test_a_second_refusal_tells_its_own_wait() -> None:
    book = EchoBook()
    book.refused("a", FULL, 14.0, 10.0)
    book.refused("a", Reason.QUEUE_FULL, 20.0, 15.0)
    assert book.look(known_as("a"), 16.0) == Echo(Arrival.EARLY, 4.0, Reason.QUEUE_FULL)
    assert len(book) == 1


def test_a_request_that_was_served_is_forgotten() -> None:
    book = EchoBook()
    book.refused("a", FULL, 14.0, 10.0)
    book.served("a")
    book.served("a")
    book.served(None)
    assert book.look(known_as("a"), 11.0) == Echo(Arrival.FIRST)


def test_more_time_may_be_given_at_once_after_an_infeasible_deadline() -> None:
    book = EchoBook()
    book.refused("a", Reason.DEADLINE_INFEASIBLE, 40.0, 10.0)
    assert book.look(known_as("a"), 10.0) == Echo(Arrival.REPEAT)


def test_who_comes_when_a_replica_serves_again_is_told_of_the_queue_and_not_of_an_outage_that_is_over() -> None:
    for reason in (Reason.NO_REPLICA, Reason.STARTING, Reason.DRAINING):
        book = EchoBook()
        book.refused("a", reason, 15.0, 10.0)
        assert book.look(known_as("a"), 11.0) == Echo(Arrival.REPEAT)


def test_a_refusal_is_remembered_for_its_jitter_and_a_backoff_of_the_clients_own() -> None:
    book = EchoBook()
    book.refused("a", FULL, 14.0, 10.0)  # told 4 s, so up to 8 s with jitter
    last = 18.0 + KNOWN_FOR_SECONDS
    assert book.look(known_as("a"), last - 0.1) == Echo(Arrival.REPEAT)
    assert book.look(known_as("a"), last) == Echo(Arrival.FIRST)
    assert book.look(known_as("a", 3), last) == Echo(Arrival.DECLARED)


def test_without_a_fingerprint_nothing_is_remembered() -> None:
    book = EchoBook()
    book.refused(None, FULL, 14.0, 10.0)
    assert len(book) == 0


def test_the_oldest_is_forgotten_first_and_a_new_refusal_makes_one_young() -> None:
    book = EchoBook(most=2)
    book.refused("a", FULL, 14.0, 10.0)
    book.refused("b", FULL, 14.0, 10.0)
    book.refused("a", FULL, 15.0, 11.0)
    book.refused("c", FULL, 15.0, 11.0)
    assert [book.look(known_as(name), 12.0).arrival for name in "abc"] == [Arrival.EARLY, Arrival.FIRST, Arrival.EARLY]


def test_what_nobody_comes_back_for_makes_room_as_new_refusals_come() -> None:
    book = EchoBook()
    for i in range(100):
        book.refused(f"old{i}", FULL, 11.0, 10.0)
    for i in range(100):
        book.refused(f"new{i}", FULL, 1001.0, 1000.0)
    assert len(book) == 100
    assert book.look(known_as("new0"), 1000.5).arrival is Arrival.EARLY


def test_amplification_follows_from_the_totals() -> None:
    book = EchoBook()
    for i in range(4):
        book.arrival(known_as(f"r{i}"), 0.0)
        book.refused(f"r{i}", FULL, 2.0, 0.0)
    for i in range(4):
        book.arrival(known_as(f"r{i}"), 1.0)  # all too early
    for i in range(2):
        book.arrival(known_as(f"r{i}"), 3.0)
    book.arrival(known_as("x", 1), 3.0)
    kinds = {Arrival.FIRST: 4, Arrival.EARLY: 4, Arrival.REPEAT: 2, Arrival.DECLARED: 1, Arrival.UNCHANGED: 0}
    assert book.totals == kinds
    assert sum(book.totals.values()) / book.totals[Arrival.FIRST] == 11 / 4


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["refuse", "refuse", "arrive", "serve"]), st.sampled_from("abcdef"), st.integers(0, 9)
        ),
        max_size=20,
    )
)
def test_the_book_says_what_the_last_three_refusals_of_a_plain_list_say(steps: list[tuple[str, str, int]]) -> None:
    book = EchoBook(most=3)
    told: list[tuple[str, int]] = []  # name and told instant, oldest first
    for now, (what, name, wait) in enumerate(steps):
        match what:
            case "refuse":
                book.refused(name, FULL, now + wait, now)
                told = [*(one for one in told if one[0] != name), (name, now + wait)][-3:]
            case "serve":
                book.served(name)
                told = [one for one in told if one[0] != name]
            case _:
                kinds = {known: Arrival.EARLY if now < until else Arrival.REPEAT for known, until in told}
                assert book.arrival(known_as(name), now).arrival is kinds.get(name, Arrival.FIRST)
        assert (len(book), book.check()) == (len(told), [])


def test_whom_a_rung_refused_is_known_for_as_long_and_early_never() -> None:
    book = EchoBook()
    book.refused("a", Reason.SHED_PRIORITY, 300.0, 0.0, promised=False)
    assert book.look(request(1, fingerprint="a"), 1.0) == Echo(Arrival.REPEAT)
    assert book.look(request(1, fingerprint="a"), 600.0 + KNOWN_FOR_SECONDS - 1.0) == Echo(Arrival.REPEAT)
    assert book.look(request(1, fingerprint="a"), 600.0 + KNOWN_FOR_SECONDS) == Echo(Arrival.FIRST)
