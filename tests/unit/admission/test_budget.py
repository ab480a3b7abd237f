import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.admission.budget import Equation, Reservation, overrun_tokens
from llmshed.admission.policy import ReplicaBudget


@pytest.mark.parametrize(
    ("ceiling", "chunk", "overrun"),
    [(1_500, 1_024, 548), (1_024, 1_024, 0), (2_048, 1_024, 0), (1, 1_024, 0), (1_025, 1_024, 1_023), (9_999, 0, 0)],
)
def test_an_engine_in_chunks_runs_to_the_next_multiple(ceiling: int, chunk: int, overrun: int) -> None:
    assert overrun_tokens(ceiling, chunk) == overrun


@given(st.integers(1, 10**6), st.floats(0, 0.99))
def test_the_guard_band_is_never_rounded_down(gross: int, ratio: float) -> None:
    budget = ReplicaBudget(gross, ratio, 1)
    assert budget.guard_band_tokens >= ratio * gross - 1e-6
    assert budget.guard_band_tokens <= ratio * gross + 1
    assert 0 <= budget.safe_budget_tokens <= gross


@pytest.mark.parametrize(
    ("gross", "ratio", "guard"), [(100, 0.07, 7), (96_000, 0.1, 9_600), (101, 0.1, 11), (7, 0.0, 0)]
)
def test_a_guard_band_without_a_fraction_is_exact(gross: int, ratio: float, guard: int) -> None:
    assert ReplicaBudget(gross, ratio, 1).guard_band_tokens == guard


def test_seats_are_sequences() -> None:
    equation = Equation(1_000, 0, 0, 0, 3, 4)
    assert equation.fits(Reservation(1, 1, 0, 1))
    assert not equation.fits(Reservation(2, 2, 0, 2))


def test_a_budget_that_shrank_under_running_work_has_negative_headroom() -> None:
    assert Equation(1_000, 100, 2_000, 0, 5, 4).headroom_tokens == -1_100
    assert Equation(1_000, 100, 2_000, 0, 5, 4).free_sequences == -1
