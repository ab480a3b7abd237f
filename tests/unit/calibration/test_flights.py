import pytest

from llmshed.calibration.flights import Flights, Role
from llmshed.workload.asks import Ask


def ask(name: str, input_tokens: int = 300) -> Ask:
    return Ask(name, input_tokens, 100, runs_to_ceiling=True, lane="interactive")


def test_the_sums_follow_sending_first_token_and_end() -> None:
    flights = Flights()
    flights.send(ask("a"), 0.0, Role.MIX)
    flights.send(ask("b", 50), 0.0, Role.MIX)
    assert (flights.reserved_tokens, flights.waiting_input_tokens, len(flights)) == (550, 350, 2)
    flights.first_token("a", 1.0)
    assert flights.waiting_input_tokens == 50
    flights.end("a")
    flights.end("b")
    assert (flights.reserved_tokens, flights.waiting_input_tokens, len(flights)) == (0, 0, 0)
    assert flights.check() == ()


def test_what_is_not_in_flight_is_ignored_and_a_first_token_counts_once() -> None:
    flights = Flights()
    assert flights.first_token("gone", 0.0) is None
    assert flights.end("gone") is None
    flights.send(ask("a"), 0.0, Role.MIX)
    assert flights.first_token("a", 1.0) is not None
    assert flights.first_token("a", 2.0) is None


def test_the_level_of_an_ask_is_the_mean_over_its_life() -> None:
    flights = Flights()
    flights.hold(1000.0, 5.0)
    flights.send(ask("a"), 10.0, Role.MIX)
    flights.hold(2000.0, 13.0)
    flight = flights.end("a")
    assert flight is not None
    assert flight.level == 1000.0
    assert flights.mean_level(flight, 14.0) == pytest.approx((3 * 1000 + 1 * 2000) / 4)


def test_overdue_are_judged_asks_without_a_first_token_beyond_their_bound() -> None:
    flights = Flights()
    for name, at, role in (("fill", 1.0, Role.FILL), ("early", 0.0, Role.MIX), ("a", 1.0, Role.MIX)):
        flights.send(ask(name), at, role)
    flights.send(ask("done"), 1.0, Role.MIX)
    flights.first_token("done", 1.5)
    assert flights.overdue(1.0, 3.0, {"interactive": 1.4}) == 1
    assert flights.overdue(1.0, 2.0, {"interactive": 1.4}) == 0
