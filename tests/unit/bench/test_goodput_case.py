"""One case of the goodput bench: ours anew beside kept rows, from figures that can be divided in the head."""

from collections.abc import Sequence
from dataclasses import replace

import goodput
import pytest
from goodput_case import case_named, case_report
from goodput_cases import SCALES, Cell
from goodput_rows import Row, from_csv
from goodput_runs import Figures

NAME = "azure_conv/llama-3-8b-a10g/pow2"


@pytest.fixture
def kept() -> list[Row]:
    """What was kept of the oracle in this case, as if it had 1,000 good tokens a second at 1x and 500 beyond."""
    rows = [row for row in from_csv(goodput.ROWS.read_text("utf-8")) if row.place == tuple(NAME.split("/"))]
    oracle = [row for row in rows if row.policy == "oracle" and row.step_time_error == 0]
    return [replace(row, good_tokens=1000.0 if row.scale == 1.0 else 500.0) for row in oracle]


def test_ours_alone_is_run_at_the_kept_rates(kept: list[Row]) -> None:
    asked: list[Cell] = []

    def measure(cells: Sequence[Cell]) -> dict[Cell, Figures]:
        asked.extend(cells)
        figures = {
            "quartile_good_tokens_per_second": [1.0, 2.0, 3.0, 4.0],
            "attainment": 0.5,
            "ttft_p95_seconds": None,
            "tpot_p95_seconds": 0.05,
            "broken_invariants": 2,
            "refusals": {"queue_full": 3},
        }
        return {
            cell: figures | {"good_tokens_per_second": 400.0 if cell.rate == cells[0].rate else 350.0} for cell in cells
        }

    told = case_report(case_named(NAME), ["ours", "oracle"], ["none", "sdk"], kept, measure)
    assert [(cell.policy, cell.clients, cell.rate) for cell in asked] == [
        ("ours", clients, row.rate) for clients in ("none", "sdk") for row in kept
    ]
    line = "400 / 350 / 350 / 350 | 100 / 88 / 88 / 88 | 40 / 70 / 70 / 70 | 40 / 35 / 35 / 35 |"
    assert f"| ours, none | {line}" in told
    assert f"| ours, sdk | {line}" in told
    assert "| oracle, none | 1,000 / 500 / 500 / 500 | 100 / 50 / 50 / 50 | 100 / 100 / 100 / 100 |" in told
    assert "oracle, sdk" not in told, "it was not run with them"
    assert "| none, 10x | 50 % | 10 / 20 / 30 / 40 | - | 0.05 | 2 | queue_full 3 |" in told


def test_kept_rows_have_a_rate_for_every_scale(kept: list[Row]) -> None:
    assert [row.rate for row in kept] == pytest.approx([scale * kept[0].rate for scale in SCALES])


def test_a_case_that_is_none_is_told_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="azure_code/llama-3-8b-h100/flat4096"):
        case_named("azure_conv")
