"""Where 1x is looked for, and that finished cells are not run again."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import goodput_grid
import pytest
from goodput_cases import CASES, SCALES, Cell
from goodput_grid import (
    COARSE_RATES,
    HALVINGS,
    Remembered,
    best_oracle_of,
    find_1x,
    grid_cells,
    measured_cells,
    misled_oracles,
    next_rates,
    oracle_cells,
    saturation,
    sorted_oracles,
)
from goodput_runs import Figures, key_of

from llmshed.whatif.gates.levels import RESERVES, WORTHS
from llmshed.whatif.gates.table import GATES

CASE = CASES[0]


def test_rates_are_tried_from_a_quarter_to_four_times_first() -> None:
    assert (COARSE_RATES[0], COARSE_RATES[-1]) == (0.25, 4.0)
    assert next_rates({}) == COARSE_RATES
    assert next_rates(dict.fromkeys(COARSE_RATES[:-1], (1.0, 1.0))) == (4.0,)


def test_1x_is_the_lowest_rate_within_one_percent_of_the_greatest() -> None:
    requests = {1.0: 98.9, 2.0: 99.0, 3.0: 100.0, 4.0: 90.0}
    assert saturation({rate: (good, rate) for rate, good in requests.items()}) == 2.0
    assert saturation({rate: (rate, good) for rate, good in requests.items()}) == 2.0


def test_the_interval_below_is_halved_until_1x_is_known_to_nine_percent() -> None:
    points = {rate: (min(rate, 1.8), rate) for rate in COARSE_RATES}
    for _ in range(HALVINGS):
        (rate,) = next_rates(points)
        points[rate] = (min(rate, 1.8), rate)
    assert next_rates(points) == ()
    assert 1.8 * 0.99 <= saturation(points) < 1.8 * 2 ** (1 / 8)


def test_nothing_is_tried_below_the_range() -> None:
    assert next_rates(dict.fromkeys(COARSE_RATES, (1.0, 1.0))) == ()


def measure_up_to(capacity: float, best_reserve: float) -> goodput_grid.Measure:
    """Return a fake whose oracle serves what comes up to a capacity, and half of that at any other reserve."""

    def measure(cells: Sequence[Cell]) -> dict[Cell, Figures]:
        return {
            cell: {
                "good_requests_per_second": min(cell.rate, capacity)
                * (1 if cell.reserve_ratio == best_reserve else 0.5),
                "good_tokens_per_second": cell.rate * (1000.0 if cell.reserve_ratio == best_reserve else 500.0),
            }
            for cell in cells
        }

    return measure


def test_1x_is_found_at_the_best_level_and_counts_overlaid_copies() -> None:
    twice = replace(CASE, overlay=2)
    found = find_1x([CASE, twice], measure_up_to(1.8, best_reserve=0.4))
    assert found[CASE] == pytest.approx(1.8, rel=0.09)
    assert found[twice] == pytest.approx(1.8, rel=0.09)


def test_a_misled_oracle_keeps_the_level_that_is_best_with_true_step_times() -> None:
    results = measured_cells({CASE: 2.0}, measure_up_to(1.8, best_reserve=0.0))
    best = best_oracle_of(CASE, 2.0, results)
    assert best.reserve_ratio == 0.0
    misled = misled_oracles(CASE, 2.0, results)
    assert misled == [replace(best, step_time_error=error) for error in (-0.2, 0.2)]
    assert set(misled) <= set(results)


def test_other_reserves_and_worths_are_tried_with_the_best_number_of_tokens() -> None:
    whole, middle, low = oracle_cells(CASE, 2.0)
    assert {(cell.reserve_ratio, cell.worth_ratio) for cell in (whole, middle, low)} == {(RESERVES[0], WORTHS[0])}
    tokens = {whole: 1.0, middle: 2.0, low: 1.5}
    results: dict[Cell, Figures] = {cell: {"good_tokens_per_second": rate} for cell, rate in tokens.items()}
    others = sorted_oracles(CASE, 2.0, results)
    assert {cell.level_tokens for cell in others} == {middle.level_tokens}
    sorts = {(cell.reserve_ratio, cell.worth_ratio) for cell in others}
    assert sorts == {(0.0, 0.0), (0.4, 0.5), (0.4, 0.7)}


def test_all_tokens_are_tried_at_1x_and_every_reserve_and_worth_at_every_scale() -> None:
    results = measured_cells({CASE: 2.0}, measure_up_to(1.8, best_reserve=0.4))
    tried = [cell for cell in results if cell.policy == "oracle" and not cell.step_time_error]
    assert [sum(cell.rate == 2.0 * scale for cell in tried) for scale in SCALES] == [6, 4, 4, 4]
    assert {cell.level_tokens for cell in tried if cell.rate > 2.0} == {oracle_cells(CASE, 2.0)[0].level_tokens}


def test_every_policy_stands_at_every_scale_of_1x() -> None:
    cells = grid_cells(CASE, 0.5, 1000)
    assert {cell.rate for cell in cells} == {0.5, 1.0, 2.5, 5.0}
    assert {cell.policy for cell in cells} == set(GATES)
    assert len(set(cells)) == len(cells)


def test_a_finished_cell_is_remembered_and_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell(CASE, "ours", 1.0)
    path = tmp_path / "cells.jsonl"
    path.write_text(f'{{"key": "{key_of(cell)}", "figures": {{"good": 7}}}}\n')
    monkeypatch.setattr(goodput_grid, "run_cell", lambda _cell: pytest.fail("it was run"))
    assert Remembered(path, 1).measure([cell]) == {cell: {"good": 7}}
