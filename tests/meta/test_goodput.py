"""The page and the drawings show the goodput that was measured, as `bench/data/goodput.csv` keeps it."""

from pathlib import Path
from xml.etree import ElementTree as ET

import goodput
import pytest
from goodput_cases import CASES, SCALES, traffic
from goodput_rows import Row, from_csv
from goodput_tables import POLICIES, drawing, tables


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return from_csv(goodput.ROWS.read_text("utf-8"))


def test_every_policy_was_measured_in_every_case_at_every_scale(rows: list[Row]) -> None:
    measured = {
        (*row.place, row.policy, row.scale) for row in rows if (row.clients, row.step_time_error) == ("none", 0)
    }
    assert measured == {
        (case.trace, case.replica, case.ceiling.value, policy, scale)
        for case in CASES
        for policy in POLICIES
        for scale in SCALES
    }


def test_the_page_shows_every_table(rows: list[Row], repository: Path) -> None:
    page = (repository / "docs" / "performance.md").read_text("utf-8")
    assert [name for name, table in tables(rows).items() if table not in page] == []


@pytest.mark.parametrize("name", goodput.DRAWINGS)
def test_a_drawing_says_what_was_measured(rows: list[Row], repository: Path, name: str) -> None:
    pytest.importorskip("matplotlib")
    # The lines of a drawing differ by a digit between versions of matplotlib; its words hold the figures.
    kept = ET.parse(repository / "docs" / f"{name}.svg").getroot()  # noqa: S314 - our own file
    drawn = ET.fromstring(drawing(rows, goodput.DRAWINGS[name], name))  # noqa: S314 - as above
    for tag in ("title", "desc"):
        told = kept.findtext(f"{{http://www.w3.org/2000/svg}}{tag}")
        assert told
        assert told == drawn.findtext(f"{{http://www.w3.org/2000/svg}}{tag}")


@pytest.mark.usefixtures("data_dir")
def test_a_kept_rate_offers_what_the_row_says(rows: list[Row]) -> None:
    case = CASES[0]
    row = next(row for row in rows if row.place == (case.trace, case.replica, case.ceiling.value) and row.scale == 2.0)
    offered = [one.at_seconds for one in traffic(case, row.rate)]
    assert len(offered) / offered[-1] == pytest.approx(row.offered_requests, abs=0.001)
