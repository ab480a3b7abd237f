"""One cell of the goodput bench: the traffic that it meets, and what is kept of the run."""

from dataclasses import replace
from pathlib import Path

import goodput_runs
import pytest
from goodput_calibrated import NAMES
from goodput_case import case_named
from goodput_cases import CASES, Case, Cell, sliced, traffic
from goodput_grid import oracle_cells
from goodput_runs import key_of, kv_tokens, replica_of, run_cell

from llmshed.workload.ceilings import CeilingRule

SHORT = replace(CASES[0], seconds=10.0)


@pytest.fixture(autouse=True)
def recorded(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_DATA", str(data_dir))


@pytest.mark.parametrize("case", CASES[:6], ids=lambda case: f"{case.trace}-{case.replica}")
def test_a_slice_holds_requests_of_its_own_time_and_begins_at_0(case: Case) -> None:
    requests = sliced(case)
    assert len(requests) > 50
    assert 0 <= requests[0].at_seconds < 2
    assert requests[-1].at_seconds < case.seconds


def test_traffic_at_twice_the_rate_is_twice_the_requests_with_the_ceilings_of_the_case() -> None:
    for ceiling, told in ((CeilingRule.FLAT1024, 1024), (CeilingRule.FLAT4096, 4096)):
        requests = list(traffic(replace(SHORT, ceiling=ceiling), 2.0))
        assert len(requests) == 2 * len(sliced(SHORT))
        assert {request.asked_output_tokens for request in requests} == {told}
    assert all(one.true_output_tokens < (one.asked_output_tokens or 0) for one in traffic(SHORT, 2.0))


def test_a_hurried_slice_comes_at_the_rate_of_the_case_in_a_part_of_the_time() -> None:
    hurried = replace(SHORT, seconds=40.0, hurry=4)
    requests = list(traffic(hurried, 4.0))
    assert len(requests) == len(sliced(hurried))
    assert requests[-1].at_seconds == sliced(hurried)[-1].at_seconds / 4
    assert len(list(traffic(hurried, 8.0))) == 2 * len(requests)


def test_equal_cells_give_equal_figures_and_keys_and_unequal_ones_other_keys() -> None:
    cell = Cell(SHORT, "ours", 1.0)
    assert run_cell(cell) == run_cell(replace(cell))
    others = (replace(cell, rate=2.0), replace(cell, policy="none"), replace(cell, step_time_error=0.2))
    assert key_of(cell) == key_of(replace(cell))
    assert len({key_of(one) for one in (cell, *others)}) == 4


@pytest.mark.parametrize("name", NAMES)
def test_a_calibrated_profile_has_other_figures_and_the_same_thresholds(name: str) -> None:
    case = case_named(name)
    cell = Cell(case, "ours", 1.0)
    assert key_of(cell) != key_of(replace(cell, calibrated=True))
    (_, derived), (_, calibrated) = replica_of(case.replica), replica_of(case.replica, case.trace)
    assert (derived.budget.basis, calibrated.budget.basis) == ("declared", "calibrated")
    assert (derived.lanes, derived.bulk, derived.limits) == (calibrated.lanes, calibrated.bulk, calibrated.limits)


def test_a_cell_of_other_code_has_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell(SHORT, "ours", 1.0)
    known = key_of(cell)
    assert goodput_runs.code_digest() == goodput_runs.code_digest.__wrapped__()
    monkeypatch.setattr(goodput_runs, "code_digest", lambda: "other")
    assert key_of(cell) != known


def test_every_request_is_in_the_figures_and_no_rule_is_broken() -> None:
    figures = run_cell(Cell(SHORT, "ours", 1.0))
    assert figures["requests"] == len(sliced(SHORT))
    assert 0 < figures["good"] <= figures["feasible"] <= figures["requests"]
    assert sum(figures["quartile_good_tokens_per_second"]) == pytest.approx(figures["good_tokens_per_second"])
    assert figures["broken_invariants"] == 0


def test_longer_steps_than_anybody_knows_make_answers_slower() -> None:
    right, slow = (run_cell(Cell(SHORT, "ours", 1.0, step_time_error=error)) for error in (0.0, 0.2))
    assert slow["tpot_p95_seconds"] / right["tpot_p95_seconds"] > 1.1
    assert slow["feasible"] == right["feasible"]


def test_the_gateways_own_time_is_charged_where_the_case_says_so() -> None:
    charged, free = (
        goodput_runs._setting(Cell(replace(SHORT, gateway_time=charge), "ours", 1.0)) for charge in (True, False)
    )
    assert (charged.gateway_seconds_per_request, charged.gateway_seconds_per_input_token) == (0.002, 0.000_001_5)
    assert charged.gateway_seconds_per_output_token == 0.000_09
    assert (free.gateway_seconds_per_request, free.gateway_seconds_per_input_token) == (0.0, 0.0)
    assert free.gateway_seconds_per_output_token == 0.0


def test_the_oracle_is_run_at_its_level() -> None:
    whole, *_, low = oracle_cells(SHORT, 2.0)
    assert (whole.level_tokens, low.level_tokens) == (kv_tokens(SHORT), kv_tokens(SHORT) // 2)
    whole, low = (replace(cell, rate=10.0) for cell in (whole, low))
    assert run_cell(whole)["good"] != run_cell(low)["good"]
