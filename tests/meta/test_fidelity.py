"""The figures on docs/simulation.md are those that the benchmark works out today."""

from pathlib import Path

import fidelity
import pytest


@pytest.fixture(scope="module")
def tables(data_dir: Path) -> dict[str, str]:
    return fidelity.tables(data_dir)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["files", "steps", "lone", "arena", "burst"])
def test_the_page_shows_the_table_as_it_is_worked_out(tables: dict[str, str], repository: Path, name: str) -> None:
    assert tables[name] in (repository / "docs" / "simulation.md").read_text("utf-8")


@pytest.mark.slow
def test_no_table_is_left_out_above(tables: dict[str, str]) -> None:
    assert list(tables) == ["files", "steps", "lone", "arena", "burst"]


@pytest.mark.slow
def test_two_milliseconds_more_a_step_explain_what_the_arena_trace_misses(data_dir: Path, repository: Path) -> None:
    page = (repository / "docs" / "simulation.md").read_text("utf-8")
    assert "With 2 ms more a step all of the third column is within 7 %" in page
    assert max(map(abs, fidelity.slora_errors(data_dir, 0.002))) < 0.07
    assert max(map(abs, fidelity.slora_errors(data_dir, 0.0))) > 0.2
