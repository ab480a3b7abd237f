"""The page shows what calibrations found against the truth, as `bench/data` keeps both."""

from pathlib import Path

import pytest
from calibration import Row, fixed_steps, read_rows, table
from calibration_cases import SEEDS, Case, cases
from calibration_truth import read_truths


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows()


@pytest.fixture(scope="module")
def truths() -> dict[Case, float]:
    return read_truths()


def test_every_case_was_calibrated_with_every_seed(rows: list[Row], truths: dict[Case, float]) -> None:
    assert {(row.case, row.seed) for row in rows} == {(case, seed) for case in cases() for seed in SEEDS}
    assert set(truths) == set(cases())
    assert all(truth > 0 for truth in truths.values())


def test_the_page_shows_the_table(rows: list[Row], repository: Path) -> None:
    page = (repository / "docs" / "calibration.md").read_text("utf-8")
    assert [line for line in table(rows) if line not in page] == []


def test_few_ceilings_are_above_the_truth_and_most_are_near_it(rows: list[Row], truths: dict[Case, float]) -> None:
    shares = [row.ceiling_tokens / truths[row.case] for row in rows]
    assert sum(share > 1 for share in shares) <= 0.05 * len(rows)
    assert sum(0.95 <= share <= 1 for share in shares) >= 0.90 * len(rows)


def test_a_run_takes_less_time_and_fewer_requests_than_it_may(rows: list[Row], truths: dict[Case, float]) -> None:
    assert max(row.seconds for row in rows) <= 900
    assert [row for row in rows if row.sweep_requests >= fixed_steps(row.case, truths[row.case])] == []
