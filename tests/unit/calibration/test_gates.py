import pytest

from llmshed.calibration.flights import Flights, Role
from llmshed.calibration.gates import AdmissionGate, RateGate, SequencesGate, TokensGate
from llmshed.calibration.plan import Shape
from llmshed.workload.asks import Ask

SHAPE = Shape(300, 100, "interactive")


def flights(count: int) -> Flights:
    held = Flights()
    for number in range(count):
        held.send(Ask(str(number), 300, 100, runs_to_ceiling=True, lane="interactive"), 0.0, Role.MIX)
    return held


def test_tokens_fit_up_to_the_level_and_one_alone_always() -> None:
    gate = TokensGate()
    assert gate.may_send(SHAPE, flights(2), 1200.0, 0.0)
    assert not gate.may_send(SHAPE, flights(2), 1199.0, 0.0)
    assert gate.may_send(SHAPE, flights(0), 1.0, 0.0)
    assert gate.over(flights(3), 1199.0)
    assert not gate.over(flights(1), 1.0)
    assert gate.next_at(1200.0, 0.0) is None


def test_sequences_fit_up_to_the_level_and_the_known_ceiling() -> None:
    gate = SequencesGate(most_tokens=1600.0)
    assert gate.may_send(SHAPE, flights(2), 3.9, 0.0)
    assert not gate.may_send(SHAPE, flights(3), 3.9, 0.0)
    assert not gate.may_send(SHAPE, flights(4), 100.0, 0.0)
    assert gate.over(flights(4), 3.9)


def test_a_rate_lets_a_prompt_in_when_those_before_it_are_paid_for() -> None:
    gate = RateGate(most_tokens=1e6, ttft_bound_seconds=100.0)
    held = flights(1)
    assert gate.may_send(SHAPE, held, 100.0, 0.0)
    gate.sent(SHAPE)
    assert not gate.may_send(SHAPE, held, 100.0, 1.0)
    assert gate.next_at(100.0, 1.0) == pytest.approx(3.0)
    assert gate.may_send(SHAPE, held, 100.0, 3.0)
    assert gate.next_at(100.0, 3.0) is None


def test_a_rate_that_the_engine_does_not_keep_up_with_lets_nothing_more_in() -> None:
    gate = RateGate(most_tokens=1e6, ttft_bound_seconds=2.0)
    assert gate.may_send(SHAPE, flights(2), 300.0, 0.0)
    assert not gate.may_send(SHAPE, flights(3), 299.0, 0.0)


def test_admission_lets_in_what_budget_cap_rate_and_window_permit() -> None:
    def gate(ceiling: float = 1200.0, most_sequences: int = 10, waiting_seconds: float = 10.0) -> AdmissionGate:
        return AdmissionGate(ceiling, most_sequences, waiting_seconds, RateGate(1e6, 100.0))

    assert gate().may_send(SHAPE, flights(2), 1000.0, 0.0)
    assert not gate(ceiling=1199.0).may_send(SHAPE, flights(2), 1000.0, 0.0)
    assert not gate(most_sequences=2).may_send(SHAPE, flights(2), 1000.0, 0.0)
    assert not gate(waiting_seconds=0.89).may_send(SHAPE, flights(2), 1000.0, 0.0)
    assert gate(waiting_seconds=0.1).may_send(SHAPE, flights(0), 1000.0, 0.0)
    metered = gate()
    metered.sent(SHAPE)
    assert not metered.may_send(SHAPE, flights(0), 1000.0, 0.0)
    assert metered.next_at(1000.0, 0.0) == pytest.approx(0.3)
    assert not metered.over(flights(9), 1.0)
