"""Where 1x is looked for, and that finished cells are not run again."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import goodput_grid
import pytest
from goodput_cases import CASES, Cell
from goodput_grid import (
    COARSE_RATES,
    HALVINGS,
    Remembered,
    best_oracle_of,
    find_1x,
    grid_cells,
    misled_oracles,
    next_rates,
    oracle_cells,
    saturation,
)
from goodput_runs import Figures, key_of

from llmshed.whatif.gates.table import GATES

CASE = CASES[0]


def test_rates_are_tried_from_a_quarter_to_four_times_first() -> None:
    assert (COARSE_RATES[0], COARSE_RATES[-1]) == (0.25, 4.0)
    assert next_rates({}) == COARSE_RATES
    assert next_rates(dict.fromkeys(COARSE_RATES[:-1], 1.0)) == (4.0,)


def test_1x_is_the_lowest_rate_within_one_percent_of_the_greatest() -> None:
    assert saturation({1.0: 98.9, 2.0: 99.0, 3.0: 100.0, 4.0: 90.0}) == 2.0


def test_the_interval_below_is_halved_until_1x_is_known_to_nine_percent() -> None:
    points = {rate: min(rate, 1.8) for rate in COARSE_RATES}
    for _ in range(HALVINGS):
        (rate,) = next_rates(points)
        points[rate] = min(rate, 1.8)
    assert next_rates(points) == ()
    assert 1.8 * 0.99 <= saturation(points) < 1.8 * 2 ** (1 / 8)


def test_nothing_is_tried_below_the_range() -> None:
    assert next_rates(dict.fromkeys(COARSE_RATES, 1.0)) == ()


def measure_up_to(capacity: float, best_reserve: float) -> goodput_grid.Measure:
    """Return a fake whose oracle serves what comes up to a capacity, and half of that at any other reserve."""

    def measure(cells: Sequence[Cell]) -> dict[Cell, Figures]:
        return {
            cell: {
                "good_requests_per_second": min(cell.rate, capacity)
                * (1 if cell.reserve_ratio == best_reserve else 0.5),
                "good_tokens_per_second": 1000.0 if cell.reserve_ratio == best_reserve else 500.0,
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
    results = measure_up_to(1.8, best_reserve=0.4)(oracle_cells(CASE, 2.0))
    best = best_oracle_of(CASE, 2.0, results)
    assert best.reserve_ratio == 0.4
    assert misled_oracles(CASE, 2.0, results) == [replace(best, step_time_error=error) for error in (-0.2, 0.2)]


def test_every_policy_stands_at_every_scale_of_1x() -> None:
    cells = grid_cells(CASE, 0.5)
    assert {cell.rate for cell in cells} == {0.5, 1.0, 2.5, 5.0}
    assert {cell.policy for cell in cells} == set(GATES)
    assert len(set(cells)) == len(cells)


def test_a_finished_cell_is_remembered_and_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell(CASE, "ours", 1.0)
    path = tmp_path / "cells.jsonl"
    path.write_text(f'{{"key": "{key_of(cell)}", "figures": {{"good": 7}}}}\n')
    monkeypatch.setattr(goodput_grid, "run_cell", lambda _cell: pytest.fail("it was run"))
    assert Remembered(path, 1).measure([cell]) == {cell: {"good": 7}}
